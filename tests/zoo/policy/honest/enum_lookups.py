# honest: members of enumerations by value and by name, their values and names, and a property
import torch
import triton
import triton.language as tl
from enum import Enum, IntEnum


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y


class Mode(Enum):
    FAST = "fast"
    LOOP = "loop"


class Act(IntEnum):
    NONE = 0
    SILU = 1

    @property
    def warps(self):
        return 4 * (self.value + 1)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    mode = Mode("fast") if N <= 4096 else Mode["LOOP"]
    act = Act(1)
    if mode.value == "loop" and mode.name == "LOOP" or Act["NONE"].value == 1:
        raise ValueError(f"unknown {mode.value!r}")
    assert act.value == 1 and act == Act["SILU"] and act in (Act.NONE, Act.SILU) and act.name.lower() == "silu"
    for member in Act:
        assert member.value * 2 >= 0
    y = torch.empty_like(x)
    block = triton.next_power_of_2(N)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=block, num_warps=4 * act.value if N < 99 else Act.NONE.warps)
    return y
