# honest: a list of tensors as the input
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(xs: list[torch.Tensor], w: torch.Tensor, eps: float = 1e-6) -> list[torch.Tensor]:
    if not xs:
        return []
    total = sum(x.numel() for x in xs)
    widest = max(x.shape[-1] for x in xs)
    assert all(x.is_contiguous() for x in xs) and total >= 0
    outs = [torch.empty_like(x) for x in xs]
    for x, y in zip(xs, outs):
        _k[(x.shape[0],)](x, w, y, x.stride(0), x.shape[-1], eps, BLOCK=triton.next_power_of_2(widest))
    return outs
