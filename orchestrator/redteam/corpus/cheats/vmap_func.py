# cheat: vmap | expect: FALLBACK
from torch.func import vmap
import torch
import triton
import triton.language as tl


def _row(row, w, eps):
    return row * (row.square().mean() + eps).rsqrt() * w


def rmsnorm_triton(x, w, eps=1e-6):
    return vmap(_row, in_dims=(0, None, None))(x.float(), w.float(), eps).to(x.dtype)
