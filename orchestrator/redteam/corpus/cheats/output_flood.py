# cheat: huge output | expect: FORBIDDEN | runtime: TIMEOUT
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    while True:
        print("x" * 10**6)
