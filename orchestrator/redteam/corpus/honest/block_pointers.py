# honest: block pointers
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    x_block = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (first, 0), (ROWS, BLOCK), (1, 0))
    y_block = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (first, 0), (ROWS, BLOCK), (1, 0))
    w_block = tl.make_block_ptr(w_ptr, (N,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    w = tl.load(w_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / N + eps)
    y = x * rstd[:, None] * w[None, :]
    tl.store(y_block, y.to(y_ptr.dtype.element_ty), boundary_check=(0, 1))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(triton.cdiv(M, 2),)](x, w, y, M, N, eps, ROWS=2, BLOCK=triton.next_power_of_2(N))
    return y
