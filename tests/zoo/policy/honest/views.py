# honest: views of every kind | notes: 1
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    *lead, N = x.shape
    x2 = x.reshape(-1, N) if x.is_contiguous() else x.contiguous().view(-1, N)
    a, b = x2.split([N // 2, N - N // 2], dim=1)
    assert a.stride(0) == b.stride(0) and a.storage_offset() == 0
    wt = w.unsqueeze(0).expand(x2.shape[0], N)[0]
    xt = x2.transpose(0, 1).t().permute(0, 1).flatten(0, 0).squeeze(-1) if N == 0 else x2[:, :N]
    y = x2.new_empty(x2.shape)
    M = x2.size(0)
    _k[(M,)](xt, wt, y, xt.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y.view(*lead, N) if lead else y[0]
