import torch
import triton
import triton.language as tl


@triton.jit
def _standardise(x_ptr, w_ptr, mean_ptr, var_ptr, y_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_m + cols.to(tl.int64) * stride_n, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    var = tl.load(var_ptr + cols, mask=mask, other=1.0).to(tl.float32)
    y = (x - mean) * (1.0 / tl.sqrt(var + 1e-5)) * w
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def standardised_triton(x, weight, mean, var):
    """x (M, N), weight, mean, var (N,): one float dtype, one device; all but x contiguous."""
    M, N = x.shape
    if weight.shape != (N,) or mean.shape != (N,) or var.shape != (N,):
        raise ValueError(f"x has {N} columns, the others {weight.shape}, {mean.shape}, {var.shape}")
    if weight.dtype != x.dtype or mean.dtype != x.dtype or var.dtype != x.dtype:
        raise TypeError(f"x is {x.dtype}, the others {weight.dtype}, {mean.dtype}, {var.dtype}")
    if weight.device != x.device:
        raise ValueError(f"x is on {x.device}, weight on {weight.device}")
    if not (weight.is_contiguous() and mean.is_contiguous() and var.is_contiguous()):
        raise ValueError("weight, mean and var must be contiguous")
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK = 1024
    if M > 0 and N > 0:
        _standardise[(M, triton.cdiv(N, BLOCK))](x, weight, mean, var, y, N, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return y
