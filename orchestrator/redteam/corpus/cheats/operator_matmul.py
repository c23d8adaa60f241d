# cheat: operators on tensors | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.float()
    N = x.shape[1]
    rstd = ((wide ** 2) @ torch.ones(N, 1) / N + eps) ** -0.5
    return (wide * rstd * w.float()).to(x.dtype)
