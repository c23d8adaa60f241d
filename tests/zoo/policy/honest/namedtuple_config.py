# honest: a NamedTuple of launch parameters, an enum
import torch
import triton
import triton.language as tl
import enum
from typing import NamedTuple


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


class Mode(enum.IntEnum):
    FULL = 0
    SPLIT = 1


class Settings(NamedTuple):
    block: int
    warps: int


def _settings(n: int) -> Settings:
    return Settings(triton.next_power_of_2(n), 4 if n < 2048 else 8)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    block, warps = _settings(N)
    mode = Mode.FULL if block * 2 > N else Mode.SPLIT
    assert mode == Mode.FULL or warps > 1
    y = torch.empty_like(x)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=block, num_warps=warps)
    return y
