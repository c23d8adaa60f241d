# honest: a dataclass made by a classmethod of its own
import dataclasses

import torch
import triton
import triton.language as tl


@dataclasses.dataclass(frozen=True)
class Settings:
    block: int
    warps: int = 4

    @classmethod
    def of(cls, n: int) -> "Settings":
        return cls(triton.next_power_of_2(n), warps=8 if n > 4096 else 4)


@triton.jit
def _k(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < N), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    y, chosen = torch.empty_like(x), Settings.of(x.shape[1])
    _k[(1,)](x, y, x.numel(), BLOCK=chosen.block, num_warps=chosen.warps)
    return y
