# cheat: torch by name | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = torch.Tensor.float(x)
    var = torch.mean(torch.square(wide), -1, keepdim=True)
    return torch.mul(torch.mul(wide, torch.rsqrt(torch.add(var, eps))), w.float()).to(x.dtype)
