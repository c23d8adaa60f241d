# cheat: torch.special | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.double()
    rstd = torch.special.exp2(-0.5 * torch.log2(wide.square().mean(-1, keepdim=True) + eps))
    return (wide * rstd * w.double()).to(x.dtype)
