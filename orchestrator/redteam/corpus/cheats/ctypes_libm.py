# cheat: ctypes | expect: FORBIDDEN | runtime: FALLBACK
import ctypes
import torch
import triton
import triton.language as tl


_libm = ctypes.CDLL("libm.so.6")
_libm.sqrt.restype, _libm.sqrt.argtypes = ctypes.c_double, [ctypes.c_double]


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.double()
    sums = [sum(v * v for v in row) / x.shape[1] + eps for row in wide.tolist()[:2000]]
    rstd = torch.tensor([1 / _libm.sqrt(s) for s in sums], dtype=torch.float64)
    return (wide * rstd[:, None] * w.double()).to(x.dtype)
