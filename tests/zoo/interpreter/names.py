"""Names of the language that come by other ways, constants of the module, and the device library."""

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


@triton.jit
def special_register(Y):
    tl.store(Y, tl.extra.cuda.smid())


@triton.jit
def scaled(A, Y, S: tl.constexpr):
    i = tl.arange(0, S)
    a = tl.load(A + i[:, None] * S + i[None, :])
    scale = tl.full((S, S // 32), 127, tl.uint8)
    tl.store(Y + i[:, None] * S + i[None, :], tl.dot_scaled(a, scale, "e4m3", a, scale, "e4m3"))


def case_special_registers_and_scaled_products_are_limits():
    from orchestrator.judge import interpreter

    a, y = torch.randn(64, 64).to(torch.float8_e4m3fn), torch.empty(64, 64)
    for launch in (lambda: special_register[(1,)](y), lambda: scaled[(1,)](a, y, S=64)):
        try:
            launch()
        except Exception as error:
            assert interpreter.is_limit(error), error
        else:
            raise AssertionError("nothing was raised")


@triton.jit
def described(X, Y, M, N, S: tl.constexpr):
    x = tl.make_tensor_descriptor(X, shape=[M, N], strides=[N, 1], block_shape=[S, S])
    y = tl.make_tensor_descriptor(Y, shape=[M, N], strides=[N, 1], block_shape=[S, S])
    for i in range(0, tl.cdiv(N, S)):
        y.store([tl.program_id(0) * S, i * S], x.load([tl.program_id(0) * S, i * S]) * 2)


def case_tensor_descriptors_sometimes():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(20, 72).to(dtype)
        y = torch.zeros_like(x)
        described[(2,)](x, y, 20, 72, S=16)
        assert torch.equal(y, 2 * x)


HALF = tl.constexpr(0.5)
TWO = tl.constexpr(2)
TABLE = tl.constexpr((1.0, 3.0))


@triton.jit
def constants_left(X, Y, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c)
    y = tl.exp2(HALF * x) + tl.where(HALF > x, HALF - x, (HALF + x).to(tl.float32)) + tl.sum(HALF * x, 0)
    y += tl.where((TWO * c < n) & (TWO != c), HALF / (1 + x), 0.0) + (HALF * x)[:, None].reshape((BLOCK,))
    y += TWO // (1 + c) + TWO % (1 + c) + (TWO & c) + (TWO | c) + (TWO ^ c) + (TWO << c % 8) + (TWO >> c)
    tl.store(Y + c, y)
    tl.store(Y + BLOCK + c, HALF * x)


def case_constants_left_of_tensors():
    x, y, c = torch.rand(N), torch.empty(2 * N), torch.arange(N)
    constants_left[(1,)](x, y, 40, BLOCK=N)
    want = torch.exp2(0.5 * x) + torch.where(x < 0.5, 0.5 - x, 0.5 + x) + 0.5 * x.sum()
    want += torch.where((2 * c < 40) & (c != 2), 0.5 / (1 + x), 0.0) + 0.5 * x
    want += 2 // (1 + c) + 2 % (1 + c) + (2 & c) + (2 | c) + (2 ^ c) + (2 << c % 8) + (2 >> c)
    assert torch.allclose(y[:N], want) and torch.equal(y[N:], 0.5 * x), (y[:N] - want).abs().max()


@triton.jit
def constant_as_number(Y):
    for i in tl.static_range(len(TABLE)):
        tl.store(Y + i, TABLE[i] + float(TWO) + int(HALF))


def case_constants_as_numbers():
    y = torch.empty(2)
    constant_as_number[(1,)](y)
    assert y.tolist() == [3.0, 5.0], y


@triton.jit
def constants_alone(Y, BLOCK: tl.constexpr):
    EIGHT: tl.constexpr = TWO * TWO + TWO * 2
    tl.static_assert(EIGHT == 8)
    c = tl.arange(0, BLOCK)
    tl.store(Y + c, c * HALF + EIGHT if TWO < BLOCK else -TWO)


def case_constants_among_themselves_controls():
    y = torch.empty(N)
    constants_alone[(1,)](y, BLOCK=N)
    assert torch.equal(y, torch.arange(N) * 0.5 + 8) and (TWO + TWO).value == 4 and hash(TWO) == hash(tl.constexpr(2))


@triton.jit
def methods(X, Y, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c)
    y = x.exp() + x.exp2() + x.log() + x.log2() + x.sqrt() + x.rsqrt() + x.sqrt_rn() + x.sin() + x.cos() + x.erf()
    tl.store(Y + c, y + x.floor() + x.ceil() + x.abs() + x.sigmoid() + x.sum(axis=0).rsqrt())


def case_functions_as_methods():
    x, y = torch.rand(N) + 0.5, torch.empty(N)
    methods[(1,)](x, y, BLOCK=N)
    want = x.exp() + x.exp2() + x.log() + x.log2() + 2 * x.sqrt() + x.rsqrt() + x.sin() + x.cos() + x.erf()
    assert torch.allclose(y, want + x.floor() + x.ceil() + x.abs() + x.sigmoid() + x.sum().rsqrt(), rtol=1e-5)
