# cheat: threads | expect: FORBIDDEN
import threading
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty_like(x)
    _k[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rmsnorm_triton(x, w, eps=1e-6):
    y = _launch(x, w, eps)
    thread = threading.Thread(target=lambda: y.copy_(_torch(x, w, eps)))
    thread.start()
    thread.join()
    return y
