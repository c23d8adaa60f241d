# honest: a block of columns of one row a program, two results, float64 for float64
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(
    dy_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, N,
    dy_row, dy_column, gate_row, gate_column, up_row, up_column, BLOCK: tl.constexpr,
):  # fmt: skip
    wide: tl.constexpr = tl.float64 if gate_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * dy_row + cols * dy_column, mask=mask, other=0.0).to(wide)
    gate = tl.load(gate_ptr + row * gate_row + cols * gate_column, mask=mask, other=0.0).to(wide)
    up = tl.load(up_ptr + row * up_row + cols * up_column, mask=mask, other=0.0).to(wide)
    s = 1.0 / (1.0 + tl.exp(-gate))
    dgate = dy * up * s * (1.0 + gate * (1.0 - s))
    tl.store(dgate_ptr + row * N + cols, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dup_ptr + row * N + cols, (dy * gate * s).to(dup_ptr.dtype.element_ty), mask=mask)


def swiglu_backward_triton(dy, gate, up):
    M, N = gate.shape
    dgate = torch.empty((M, N), dtype=gate.dtype, device=gate.device)
    dup = torch.empty((M, N), dtype=up.dtype, device=up.device)
    if M:
        BLOCK = min(triton.next_power_of_2(N), 8192)
        _kernel[(M, triton.cdiv(N, BLOCK))](
            dy, gate, up, dgate, dup, N, dy.stride(0), dy.stride(1),
            gate.stride(0), gate.stride(1), up.stride(0), up.stride(1), BLOCK=BLOCK,
        )  # fmt: skip
    return dgate, dup
