# honest: torch._check and torch._assert of sizes, operator.mul over a shape, torch.jit's queries, a guard's annotation
import torch
import triton
import triton.language as tl
import contextlib
import functools
import operator
from operator import add


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y


def _guard(t: torch.Tensor) -> contextlib.AbstractContextManager:
    return torch.cuda.device(t.device) if t.is_cuda else contextlib.nullcontext()


def rmsnorm_triton(x, w, eps=1e-6):
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        raise RuntimeError("not scriptable")
    torch._check(x.dim() >= 1, lambda: f"a matrix, not {x.dim()} dimensions")
    torch._check_value(x.shape[-1] == w.numel(), lambda: "shapes differ")
    torch._assert(x.is_contiguous(), "rows in one piece")
    rows = functools.reduce(operator.mul, x.shape[:-1], 1)
    sizes = list(map(add, [rows], [x.shape[-1]]))
    assert sizes[0] >= 0
    with _guard(x):
        return _launch(x.view(rows, x.shape[-1]), w, eps).view(x.shape)
