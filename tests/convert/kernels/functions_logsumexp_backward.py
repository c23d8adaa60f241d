import torch
import triton
import triton.language as tl


@triton.jit
def _gradient(dy_ptr, x_ptr, dx_ptr, N, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=-float("inf")).to(WIDE)
    dy = tl.load(dy_ptr + row).to(WIDE)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(dx_ptr + row * N + cols, (dy * e / tl.sum(e, 0)).to(dx_ptr.dtype.element_ty), mask=mask)


def functions_logsumexp_backward_triton(dy, x):
    """dy (M,), x (M, N): one float dtype, one device, contiguous."""
    M, N = x.shape
    if dy.shape != (M,):
        raise ValueError(f"x has {M} rows, dy the shape {tuple(dy.shape)}")
    if dy.dtype != x.dtype:
        raise TypeError(f"x is {x.dtype}, dy {dy.dtype}")
    if dy.device != x.device:
        raise ValueError(f"x is on {x.device}, dy on {dy.device}")
    if not (x.is_contiguous() and dy.is_contiguous()):
        raise ValueError("x and dy must be contiguous")
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    if M > 0:
        _gradient[(M,)](dy, x, dx, N, WIDE=wide, BLOCK=triton.next_power_of_2(N))
    return dx
