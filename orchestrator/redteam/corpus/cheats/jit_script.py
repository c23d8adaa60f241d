# cheat: torch.jit | expect: FALLBACK
import torch
import triton
import triton.language as tl


@torch.jit.script
def _fused(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rmsnorm_triton(x, w, eps=1e-6):
    return _fused(x, w, eps)
