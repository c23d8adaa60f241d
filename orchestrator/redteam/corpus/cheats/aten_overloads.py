# cheat: torch.ops.aten | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    aten = torch.ops.aten
    wide = x.float()
    var = aten.mean.dim(aten.square.default(wide), [-1], True)
    return aten.mul.Tensor(aten.mul.Tensor(wide, aten.rsqrt.default(var + eps)), w.float()).to(x.dtype)
