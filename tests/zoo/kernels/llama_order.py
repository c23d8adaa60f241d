# honest: rounds x * rstd to the input's dtype before the product with w, as Llama does | expect: PASSED
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    wide = x.to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(wide * wide, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (wide * rstd).to(x.dtype) * w, mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
