# cheat: torch in a launch hook | expect: FORBIDDEN
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


@triton.jit
def _nothing(y_ptr):
    tl.store(y_ptr, tl.load(y_ptr))


_NOW = {}


def _hook(metadata):
    _NOW["y"].copy_(_torch(_NOW["x"], _NOW["w"], _NOW["eps"]))


triton.knobs.runtime.launch_exit_hook.add(_hook)


def rmsnorm_triton(x, w, eps=1e-6):
    _NOW.update(x=x, w=w, eps=eps)
    y = _NOW["y"] = torch.empty_like(x)
    _nothing[(1,)](y)
    return y
