# honest: backend and capability asked for the number of warps
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


def _is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


def _warps(block):
    if torch.version.hip is not None:
        return 4
    major = torch.cuda.get_device_capability()[0] if _is_cuda() and torch.cuda.is_available() else 0
    return min(max(block // (256 if major >= 9 else 512), 1), 16)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(N)
    _rms[(M,)](x, w, y, N, eps, BLOCK=BLOCK, num_warps=_warps(BLOCK))
    return y
