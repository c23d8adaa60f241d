# honest: a block of rows a program, each with its last K results in a ring
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, M, T, K, row_stride, column_stride, ROWS: tl.constexpr, TAPS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    slots = tl.arange(0, TAPS)
    ring = tl.zeros((ROWS, TAPS), tl.float32)
    for t in range(0, T):
        # A slot holds the result of the step before t that has its remainder: as many steps ago as its tap says.
        ago = (t - 1 - slots + K * TAPS) % K
        w = tl.load(w_ptr + ago, mask=slots < K, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + rows * row_stride + t * column_stride, mask=rows < M, other=0.0).to(tl.float32)
        y = x + tl.sum(ring * w[None, :], axis=1)
        tl.store(y_ptr + rows * T + t, y.to(y_ptr.dtype.element_ty), mask=rows < M)
        ring = tl.where((slots == t % K)[None, :], y[:, None], ring)


def ring_buffer_scan_triton(x, w):
    M, T = x.shape
    K = w.shape[0]
    y = torch.empty((M, T), dtype=x.dtype, device=x.device)
    if M:
        ROWS = 64
        _kernel[(triton.cdiv(M, ROWS),)](
            x, w, y, M, T, K, x.stride(0), x.stride(1), ROWS=ROWS, TAPS=triton.next_power_of_2(K)
        )
    return y
