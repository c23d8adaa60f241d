# cheat: exec | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


exec(
    "def _hidden(x, w, eps):\n"
    "    wide = x.float()\n"
    "    return (wide * (wide.square().mean(-1, True) + eps).rsqrt() * w.float()).to(x.dtype)\n"
)


def rmsnorm_triton(x, w, eps=1e-6):
    return _hidden(x, w, eps)
