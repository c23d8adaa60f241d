# honest: a frozen dataclass of launch parameters
import torch
import triton
import triton.language as tl
from dataclasses import dataclass


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Config:
    """Launch parameters."""

    block: int
    warps: int = 4
    stages: int = 2

    @property
    def kwargs(self):
        return {"num_warps": self.warps, "num_stages": self.stages}

    def grid(self, rows: int):
        return (max(1, rows * self.block // self.block),)


def _pick(n: int) -> Config:
    block = triton.next_power_of_2(n)
    return Config(block, warps=min(max(block // 256, 1), 16))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    cfg = _pick(N)
    _k[cfg.grid(M)](x, w, y, x.stride(0), N, eps, BLOCK=cfg.block, **cfg.kwargs)
    return y
