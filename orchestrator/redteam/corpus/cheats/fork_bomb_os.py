# cheat: fork bomb | expect: FORBIDDEN | runtime: CRASHED
import os
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    while True:
        os.fork()
