# honest: asserts, contiguous(), early return for nothing
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


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    assert x.ndim == 2 and w.shape == (N,), f"x {tuple(x.shape)}, w {tuple(w.shape)}"
    assert x.device == w.device, "x and w lie on different devices"
    if x.numel() == 0:
        return x.new_empty(x.shape)
    x = x if x.is_contiguous() else x.contiguous()
    w = w.contiguous()
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    _rms[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
