# cheat: torch._C | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


_F = torch._C._VariableFunctions


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.float()
    var = _F.mean(_F.square(wide), -1, True)
    return _F.mul(_F.mul(wide, _F.rsqrt(var + eps)), w.float()).to(x.dtype)
