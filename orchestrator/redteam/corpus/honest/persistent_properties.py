# honest: persistent grid, as many programs as multiprocessors
import functools
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        at = tl.cast(row, tl.int64) * N + cols
        x = tl.load(x_ptr + at, mask=cols < N, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
        tl.store(y_ptr + at, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


@functools.lru_cache(maxsize=None)
def _multiprocessors(index):
    return torch.cuda.get_device_properties(index).multi_processor_count


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    programs = min(M, 2 * _multiprocessors(x.device.index or 0))
    _rms[(programs,)](x, w, y, M, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
