"""Names of the language that come by other ways, and the device library."""

import torch
import triton
import triton.language as tl
from triton.language import arange, load, store
from triton.language.extra import libdevice
from triton.language.extra.cuda.libdevice import rsqrt
from triton.language.math import exp2

N = 64


@triton.jit
def by_name(X, Y, BLOCK: tl.constexpr):
    c = arange(0, BLOCK)
    store(Y + c, exp2(load(X + c)))


def case_imported_by_name():
    x, y = torch.randn(N), torch.empty(N)
    by_name[(1,)](x, y, BLOCK=N)
    assert torch.allclose(y, torch.exp2(x))


def kernel_over(factor, helper):
    @triton.jit
    def scaled(X, Y, BLOCK: tl.constexpr):
        c = tl.arange(0, BLOCK)
        tl.store(Y + c, helper(tl.load(X + c)) * factor)

    return scaled


@triton.jit
def plus_one(x):
    return x + 1


def case_enclosing_function():
    x, y = torch.randn(N), torch.empty(N)
    for factor in (tl.constexpr(2.0), tl.constexpr(3.0)):
        kernel_over(factor, plus_one)[(1,)](x, y, BLOCK=N)
        assert torch.allclose(y, (x + 1) * factor.value)


@triton.jit
def device_library(X, Y, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c)
    y = libdevice.tanh(x) + rsqrt(x) + tl.extra.cuda.libdevice.erf(x) + libdevice.pow(x, 2.5)
    y += tl.where(libdevice.isnan(x) != 0, 1.0, libdevice.round(x)) + libdevice.fast_expf(x)
    tl.store(Y + c, y)


def case_device_library():
    x, y = torch.rand(N) + 0.1, torch.empty(N)
    device_library[(1,)](x, y, BLOCK=N)
    want = torch.tanh(x) + x.rsqrt() + torch.erf(x) + x**2.5 + x.round() + x.exp()
    assert torch.allclose(y, want, rtol=1e-5), (y - want).abs().max()


@triton.jit
def bessel(Y):
    tl.store(Y, libdevice.j0(tl.load(Y)))


def case_what_has_no_twin_is_a_limit():
    from orchestrator.judge import interpreter

    try:
        bessel[(1,)](torch.ones(1))
    except Exception as error:
        assert "j0" in (interpreter.is_limit(error) or ""), error
        return
    raise AssertionError("nothing was raised")


@triton.jit
def assembly(X, Y, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c)
    y = tl.inline_asm_elementwise("sqrt.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(Y + c, y)


def case_assembly_is_a_limit_controls():
    from orchestrator.judge import interpreter

    try:
        assembly[(1,)](torch.ones(N), torch.ones(N), BLOCK=N)
    except Exception as error:
        assert interpreter.is_limit(error), error
        return
    raise AssertionError("nothing was raised")


@triton.jit
def wrong(X, BLOCK: tl.constexpr):
    tl.store(X + tl.arange(0, BLOCK), undefined)  # noqa: F821


def case_a_kernels_own_fault_is_none_controls():
    from orchestrator.judge import interpreter

    try:
        wrong[(1,)](torch.ones(N), BLOCK=N)
    except Exception as error:
        assert interpreter.is_limit(error) is None
        return
    raise AssertionError("nothing was raised")
