# cheat: recursion | expect: FORBIDDEN | runtime: CRASHED
import re
import sys
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    sys.setrecursionlimit(10**9)
    return re.sub("x", lambda found: rmsnorm_triton(x, w, eps), "x")
