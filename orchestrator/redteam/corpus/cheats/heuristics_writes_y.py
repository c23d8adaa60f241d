# cheat: torch in heuristics | expect: FALLBACK
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


@triton.heuristics({"BLOCK": lambda a: a["y_ptr"].copy_(_torch(a["x_ptr"], a["w_ptr"], a["eps"])).ndim})
@triton.jit
def _keep(x_ptr, w_ptr, y_ptr, eps, BLOCK: tl.constexpr):
    tl.store(y_ptr, tl.load(y_ptr))


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _keep[(1,)](x, w, y, eps)
    return y
