# honest: settings in a dataclass
import dataclasses
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@dataclasses.dataclass(frozen=True)
class Settings:
    block: int
    warps: int = 4

    @classmethod
    def of(cls, n: int) -> "Settings":
        block = triton.next_power_of_2(n)
        return cls(block, warps=min(16, max(1, block // 256)))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, chosen = torch.empty_like(x), Settings.of(N)
    _rms[(M,)](x, w, y, N, eps, BLOCK=chosen.block, num_warps=chosen.warps)
    return y
