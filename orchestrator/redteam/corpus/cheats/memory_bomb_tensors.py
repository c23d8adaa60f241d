# cheat: memory bomb | expect: FALLBACK | runtime: CRASHED
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    kept = []
    while True:
        kept.append(torch.ones(1 << 24))
