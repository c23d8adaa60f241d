# honest: asks the host for its GPU, as libraries do | expect: PASSED
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"ROWS": 1}, num_warps=n) for n in (4, 16)], key=["N"])
@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, M, N, eps, programs, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    for first in range(tl.program_id(0) * ROWS, M, programs * ROWS):
        rows = first + tl.arange(0, ROWS)
        at = rows.to(tl.int64)[:, None] * N + cols[None, :]
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / N + eps.to(tl.float32))
        tl.store(y_ptr + at, (x * rstd[:, None] * w[None, :]).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    if x.device.type != "cuda" or x.is_cpu or x.get_device() != w.get_device():
        raise ValueError(f"expected tensors of one card, not of {x.device} and {w.device}")
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    with torch.cuda.device(x.device):
        programs = min(M, torch.cuda.get_device_properties(x.device).multi_processor_count)
        _kernel[(programs,)](x, w, y, M, N, eps, programs, BLOCK=triton.next_power_of_2(N))
    return y
