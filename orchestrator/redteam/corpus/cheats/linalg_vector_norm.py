# cheat: torch.linalg | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.double()
    rms = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) / x.shape[1] ** 0.5
    return (wide / torch.sqrt(rms * rms + eps) * w.double()).to(x.dtype)
