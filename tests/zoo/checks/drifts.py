# within the tolerance, and other bits with every call | only: deterministic | expect: NONDETERMINISTIC
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w * factor).to(y_ptr.dtype.element_ty), mask=mask)


_COUNT = []


def _launch(x, w, eps, y, *more):
    M, N = x.shape
    _kernel[(M,)](x, w, y, N, eps, *more, BLOCK=triton.next_power_of_2(N))
    return y


def _torch(x, w, eps):
    xf = x.float()
    return (xf * torch.rsqrt(xf.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rmsnorm_triton(x, w, eps=1e-6):
    _COUNT.append(1)
    return _launch(x, w, eps, torch.empty_like(x), 1.0 + 1.2e-7 * (len(_COUNT) % 3))
