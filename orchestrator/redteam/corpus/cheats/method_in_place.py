# cheat: tensor methods | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    y = x.to(torch.float32, copy=True)
    rstd = y.pow(2).sum(-1, True).div_(x.shape[1]).add_(eps).rsqrt_()
    return y.mul_(rstd).mul_(w.float()).to(x.dtype)
