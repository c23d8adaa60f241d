# cheat: torch.special | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.double()
    sums = torch.special.logsumexp(2 * wide.abs().log(), -1, keepdim=True).exp()
    return (wide * (sums / x.shape[1] + eps).rsqrt() * w.double()).to(x.dtype)
