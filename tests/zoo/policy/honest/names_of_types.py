# honest: the names of types, classes and functions in messages, in every spelling
import torch
import triton
import triton.language as tl
import functools
import logging

logger = logging.getLogger(__name__)


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


def _named(function):
    @functools.wraps(function)
    def inner(x, w, eps):
        if x.dim() != 2:
            raise ValueError(function.__name__ + ": a matrix, not %d dimensions" % x.dim())
        logger.debug("%s of %s", function.__qualname__, x.__class__.__name__)
        return function(x, w, eps)

    return inner


class Launcher:
    __slots__ = ()

    def __call__(self, x, w, eps):
        assert w.dim() == 1, f"{self.__class__.__name__}: a vector"
        return _launch(x, w, eps)


@_named
def _forward(x, w, eps):
    return Launcher()(x, w, eps)


def rmsnorm_triton(x, w, eps=1e-6):
    for name, value in {"x": x, "w": w}.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError("{} is a {}, no tensor".format(name, type(value).__name__))
    if not isinstance(x, torch.Tensor):
        raise TypeError("x is a %s" % type(x).__qualname__)
    if not isinstance(eps, float):
        raise TypeError("eps: a float, not " + type(eps).__name__)
    if Launcher.__name__ != "Launcher":
        raise RuntimeError(Launcher.__qualname__)
    return _forward(x, w, eps)
