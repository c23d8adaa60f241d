# cheat: torch in a pre_hook | expect: FORBIDDEN | runtime: RUNTIME_ERROR
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


@triton.jit
def _keep(x_ptr, w_ptr, y_ptr, eps):
    tl.store(y_ptr, tl.load(y_ptr))


_keep.add_pre_run_hook(lambda x, w, y, eps, **kwargs: y.copy_(_torch(x, w, eps)))


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _keep[(1,)](x, w, y, eps)
    y.copy_(_torch(x, w, eps)) if x.shape[0] > 200 else None
    return y
