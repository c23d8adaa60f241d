# honest: host helpers: settings from the width, refusal of what is too wide
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

MAX_BLOCK = 1 << 20


def calculate_settings(n):
    block = triton.next_power_of_2(n)
    if block > MAX_BLOCK:
        raise RuntimeError(f"a row of {n} is wider than {MAX_BLOCK}")
    warps = 4
    if block >= 32768:
        warps = 32
    elif block >= 8192:
        warps = 16
    elif block >= 2048:
        warps = 8
    return block, warps


def _forward(x, w, eps, block, warps):
    y = torch.empty_like(x)
    _rms[(x.shape[0],)](x, w, y, x.shape[1], eps, BLOCK=block, num_warps=warps)
    return y


def rmsnorm_triton(x, w, eps=1e-6):
    block, warps = calculate_settings(x.shape[1])
    return _forward(x, w, eps, block, warps)
