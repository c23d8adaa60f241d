# status: FALLBACK | a dataclass has fields with the names of tensor methods
from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass(frozen=True)
class Op:
    mul: int = 1
    rsqrt: int = 2
    mean: int = 3
    square: int = 4
    add: int = 5


@triton.jit
def _copy(a_ptr, y_ptr, total, BLOCK: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(a_ptr + o, mask=o < total), mask=o < total)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    r = x.mul(x.square().mean(1, keepdim=True).add(eps).rsqrt()).mul(w)
    _copy[(triton.cdiv(M * N, 1024),)](r, y, M * N, BLOCK=1024)
    return y
