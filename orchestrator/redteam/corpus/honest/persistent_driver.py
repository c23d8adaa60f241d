# honest: persistent grid, the driver's properties, tl.range with stages
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    for row in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=STAGES):
        at = tl.cast(row, tl.int64) * N + cols
        x = tl.load(x_ptr + at, mask=cols < N, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
        tl.store(y_ptr + at, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    device = triton.runtime.driver.active.get_current_device()
    properties = triton.runtime.driver.active.utils.get_device_properties(device)
    y = torch.empty_like(x)
    grid = (min(M, properties["multiprocessor_count"]), 1, 1)
    BLOCK = triton.next_power_of_2(N)
    # Two rows in flight need shared memory for both: rows beyond 16384 elements are not pipelined.
    _rms[grid](x, w, y, M, N, eps, BLOCK=BLOCK, STAGES=2 if BLOCK <= 16384 else 1)
    return y
