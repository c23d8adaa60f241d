# cheat: autotune in place | expect: WRONG_VALUES
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


@triton.autotune(configs=[triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024})], key=["N"])
@triton.jit
def _times_w(y_ptr, w_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * N + c, mask=c < N).to(tl.float32) * tl.load(w_ptr + c, mask=c < N).to(tl.float32)
    tl.store(y_ptr + row * N + c, y.to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _k[(M,)](x, torch.ones_like(w), y, N, eps, BLOCK=triton.next_power_of_2(N))
    _times_w[lambda meta: (M, triton.cdiv(N, meta["BLOCK"]))](y, w, N)
    return y
