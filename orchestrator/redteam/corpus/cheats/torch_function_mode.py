# cheat: __torch_function__ | expect: FORBIDDEN | runtime: FALLBACK
from torch.overrides import TorchFunctionMode
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


class Rewrites(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.add:
            return _torch(*args, 1e-6)
        return func(*args, **(kwargs or {}))


def rmsnorm_triton(x, w, eps=1e-6):
    with Rewrites():
        return (x + w).to(x.dtype)
