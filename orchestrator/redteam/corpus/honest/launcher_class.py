# honest: a launcher class with __init__ and __call__, partial sums between its kernels
from typing import Any, ClassVar, Protocol

import torch
import triton
import triton.language as tl


class Launcher(Protocol):
    def __call__(self, x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor: ...


@triton.jit
def _combine(a, b):
    return a + b


@triton.jit
def _sumsq_kernel(x_ptr, part_ptr, N, SPLITS, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * SPLITS + part, tl.reduce(x * x, 0, _combine))


@triton.jit
def _norm_kernel(x_ptr, w_ptr, part_ptr, y_ptr, N, SPLITS, eps, BLOCK: tl.constexpr, SPLITS_P2: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    s = tl.arange(0, SPLITS_P2)
    total = tl.sum(tl.load(part_ptr + row * SPLITS + s, mask=s < SPLITS, other=0.0), axis=0)
    rstd = 1.0 / tl.sqrt_rn(total / N + eps)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, x * rstd * w, mask=mask)


class SplitRMSNorm:
    """Splits the row over programs; two kernels with partial sums between."""

    BLOCK: ClassVar[int] = 1024

    def __init__(self, block: int = BLOCK, **options: Any) -> None:
        self.block = block
        self.options = {"num_warps": 4, **options}

    def _scratch(self, x: torch.Tensor, splits: int) -> torch.Tensor:
        return x.new_empty((x.shape[0], splits), dtype=torch.float32)

    def __call__(self, x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
        rows, n = x.shape
        splits = triton.cdiv(n, self.block)
        parts = self._scratch(x, splits)
        y = torch.empty_like(x)
        _sumsq_kernel[(rows, splits)](x, parts, n, splits, BLOCK=self.block, **self.options)
        _norm_kernel[(rows, splits)](
            x, w, parts, y, n, splits, eps, BLOCK=self.block, SPLITS_P2=triton.next_power_of_2(splits), **self.options
        )
        return y


_launcher: Launcher = SplitRMSNorm(num_stages=2)


def rmsnorm_triton(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return _launcher(x, w, eps)
