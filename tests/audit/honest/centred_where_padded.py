# honest: without padding nothing is set back, and a heuristic says when there is none
import torch
import triton
import triton.language as tl


@triton.heuristics({"EVEN": lambda args: args["N"] % args["BLOCK"] == 0})
@triton.jit
def _norm(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = x - mean if EVEN else tl.where(cols < N, x - mean, 0.0)
    again = x - mean
    if not EVEN:
        again = tl.where(cols < N, again, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / N + eps)
    y = (again - tl.sum(again, axis=0) / N) * rstd
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)


def layernorm_triton(x, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _norm[(M,)](x, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
