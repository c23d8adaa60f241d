# honest: IntEnum and StrEnum, Flag members by auto(), iteration over an Enum
import enum

import torch
import triton
import triton.language as tl

@triton.jit
def _rms_fwd(X, W, Y, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    X += row * stride
    Y += row * stride
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        acc += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(Y + cols, (x * rstd * w).to(Y.dtype.element_ty), mask=mask)


class Warps(enum.IntEnum):
    FEW = 1
    SOME = 4
    MANY = 8


class Kind(str, enum.Enum):
    SMALL = "small"
    LARGE = "large"


def _kind(n):
    return Kind.SMALL if n <= 1024 else Kind("large")


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    warps = {Kind.SMALL: Warps.SOME, Kind.LARGE: Warps.MANY}[_kind(N)]
    if N < 64:
        warps = min(Warps)
    _rms_fwd[(M,)](x, w, y, N, N, eps, BLOCK=min(8192, triton.next_power_of_2(N)), num_warps=int(warps))
    return y
