# cheat: other kernel libraries | expect: FORBIDDEN | runtime: COMPILE_ERROR
from quack import rmsnorm
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    return rmsnorm(x, w, eps=eps)
