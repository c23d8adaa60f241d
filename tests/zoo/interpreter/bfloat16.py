"""bfloat16 in a kernel against torch, bit for bit where the operation is rounded once."""

import torch
import triton
import triton.language as tl

N = 300


def inputs(seed=0):
    torch.manual_seed(seed)
    return torch.randn(N).bfloat16(), torch.randn(N).bfloat16()


def same(got, want):
    assert torch.equal(got, want), f"{int((got != want).sum())} of {got.numel()} differ, e.g. {got[:3]} for {want[:3]}"


@triton.jit
def arithmetic(X, W, Y, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(X + c, mask=m, other=1.0)
    w = tl.load(W + c, mask=m, other=1.0)
    if OP == "add":
        y = x + w
    elif OP == "sub":
        y = x - w
    elif OP == "mul":
        y = x * w
    elif OP == "div":
        y = x / w
    elif OP == "scaled":
        y = x * 1.7 + 0.3
    elif OP == "where":
        y = tl.where(x < w, x, w)
    elif OP == "maximum":
        y = tl.maximum(x, w)
    elif OP == "minimum":
        y = tl.minimum(x, 0.5)
    elif OP == "exp":
        y = tl.exp(x.to(tl.float32))
    elif OP == "abs":
        y = tl.abs(x)
    elif OP == "neg":
        y = -x
    elif OP == "fma":
        y = tl.fma(x, w, x)
    tl.store(Y + c, y.to(tl.bfloat16), mask=m)


def elementwise(op, want):
    x, w = inputs()
    y = torch.empty_like(x)
    arithmetic[(1,)](x, w, y, N, OP=op, BLOCK=512)
    same(y, want(x, w))


def case_add():
    elementwise("add", torch.add)


def case_subtract():
    elementwise("sub", torch.sub)


def case_multiply():
    elementwise("mul", torch.mul)


def case_divide():
    elementwise("div", lambda x, w: (x.float() / w.float()).bfloat16())


def case_scalars():
    elementwise("scaled", lambda x, w: x * torch.tensor(1.7).bfloat16() + torch.tensor(0.3).bfloat16())


def case_where():
    elementwise("where", lambda x, w: torch.where(x < w, x, w))


def case_maximum_controls():
    elementwise("maximum", torch.maximum)


def case_minimum_controls():
    elementwise("minimum", lambda x, w: torch.clamp(x, max=0.5))


def case_exp():
    elementwise("exp", lambda x, w: torch.exp(x.float()).bfloat16())


def case_abs_controls():
    elementwise("abs", lambda x, w: x.abs())


def case_negative():
    elementwise("neg", lambda x, w: -x)


def case_fma():
    elementwise("fma", lambda x, w: (x.double() * w.double() + x.double()).float().bfloat16())


@triton.jit
def convert(X, Y, TO_ZERO: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c)
    if TO_ZERO:
        y = x.to(Y.dtype.element_ty, fp_downcast_rounding="rtz")
    else:
        y = x.to(Y.dtype.element_ty)
    tl.store(Y + c, y)


def converted(x, dtype, to_zero=False):
    y = torch.empty(x.numel(), dtype=dtype)
    convert[(1,)](x, y, TO_ZERO=to_zero, BLOCK=x.numel())
    return y


TIES = torch.tensor([1.00390625, 1.01171875, -1.00390625, 3.4e38, 1e-40, float("inf"), -0.0, 0.1])


def case_round_to_nearest_even():
    same(converted(TIES, torch.bfloat16), TIES.bfloat16())


def case_round_to_zero():
    bits = TIES.view(torch.int32) & -65536
    same(converted(TIES, torch.bfloat16, to_zero=True), bits.view(torch.float32).bfloat16())


def case_half_round_to_zero():
    x = torch.tensor([1.0009, -1.0009, 0.33333, 70000.0, 65519.0, 2.5, -3.1, 1e-5])
    got = converted(x, torch.float16, to_zero=True).float()
    assert (got.abs() <= x.abs()).all() and torch.isfinite(got).all(), got
    assert ((got - x).abs() <= torch.where(x > 65504, 5000.0, x.abs() * 2**-10 + 1e-7)).all(), got


def case_to_and_from_float_controls():
    x = torch.randn(64).bfloat16()
    same(converted(x, torch.float32), x.float())


def case_to_int_controls():
    x = torch.tensor([1.0, -2.0, 100.0, 3.5]).bfloat16()
    same(converted(x, torch.int32), x.to(torch.int32))


def case_to_half_controls():
    x = torch.randn(64).bfloat16()
    same(converted(x, torch.float16), x.half())


@triton.jit
def llama(X, W, Y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(X + row * N + c, mask=m, other=0.0).to(tl.float32)
    w = tl.load(W + c, mask=m)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(Y + row * N + c, (x * rstd).to(tl.bfloat16) * w, mask=m)


def case_llama_order():
    torch.manual_seed(1)
    x, w = torch.randn(5, N).bfloat16(), torch.randn(N).bfloat16()
    y = torch.empty_like(x)
    llama[(5,)](x, w, y, N, 1e-6, BLOCK=512)
    f = x.float()
    same(y, (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).bfloat16() * w)


@triton.jit
def reductions(X, Y, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c, mask=c < N, other=0.0)
    tl.store(Y, tl.sum(x + x))
    tl.store(Y + 1, tl.max(x + x))
    tl.store(Y + 2, tl.min(x + x))
    tl.store(Y + 3, tl.max(tl.cumsum(x + x, 0)))


def case_reductions():
    x, _ = inputs()
    y = torch.empty(4)
    reductions[(1,)](x, y, N, BLOCK=512)
    d = (x + x).float()
    want = torch.stack([d.sum(), d.max(), d.min(), torch.nn.functional.pad(d.cumsum(0), (0, 1)).max()])
    assert torch.allclose(y[1:], want[1:], rtol=1e-5, atol=1e-4), (y, want)
    assert abs(y[0] - want[0]) < 0.25, "a sum of bfloat16 is made in bfloat16, in a tree, on a GPU as well"


@triton.jit
def long_sum(X, Y, BLOCK: tl.constexpr):
    tl.store(Y, tl.sum(tl.load(X + tl.arange(0, BLOCK))))


def case_long_sum():
    y = torch.empty(1)
    long_sum[(1,)](torch.full((4096,), 0.75).bfloat16(), y, BLOCK=4096)
    assert y.item() == 3072, "one after the other it would stand still at 192"


@triton.jit
def dot(A, B, C, OUT: tl.constexpr, S: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    tl.store(C + at, tl.dot(tl.load(A + at), tl.load(B + at), out_dtype=OUT))


def case_dot():
    torch.manual_seed(2)
    a, b = torch.randn(32, 32).bfloat16(), torch.randn(32, 32).bfloat16()
    c = torch.empty(32, 32)
    dot[(1,)](a, b, c, OUT=tl.float32, S=32)
    assert torch.allclose(c, a.float() @ b.float(), rtol=1e-5, atol=1e-5), (c - a.float() @ b.float()).abs().max()


@triton.jit
def compare(X, W, Y, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x, w = tl.load(X + c), tl.load(W + c)
    tl.store(Y + c, (x < w).to(tl.int32) + 2 * (x >= 0.0).to(tl.int32) + 4 * (x == w).to(tl.int32))


def case_comparisons():
    x, w = inputs()
    x[5] = w[5]
    y = torch.empty(256, dtype=torch.int32)
    compare[(1,)](x, w, y, BLOCK=256)
    x, w = x[:256], w[:256]
    same(y, (x < w).int() + 2 * (x >= 0).int() + 4 * (x == w).int())


@triton.jit
def atomics(X, Y, OLD, N, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(X + c, mask=m)
    tl.store(OLD + c, tl.atomic_add(Y + c % 4, x, mask=m), mask=m)


def case_atomics():
    x, _ = inputs()
    y, old = torch.zeros(4).bfloat16(), torch.empty(N).bfloat16()
    atomics[(3,)](x, y, old, N, BLOCK=128)
    want = torch.zeros(4).bfloat16()
    for index, value in enumerate(x):
        assert old[index] == want[index % 4]
        want[index % 4] += value
    same(y, want)


@triton.jit
def fill(Y, BLOCK: tl.constexpr):
    tl.store(Y + tl.arange(0, BLOCK), tl.full((BLOCK,), 1.5, tl.bfloat16))


def case_constant():
    y = torch.empty(16).bfloat16()
    fill[(1,)](y, BLOCK=16)
    same(y, torch.full((16,), 1.5).bfloat16())


@triton.jit
def eight_bits(X, Y, Z, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(Y + c, tl.load(X + c).to(Y.dtype.element_ty))
    tl.store(Z + c, tl.load(Y + c).to(tl.bfloat16))


def case_eight_bits():
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x, y, z = torch.randn(1024).to(dtype) * 5, torch.empty(1024).to(kind), torch.empty(1024).bfloat16()
            eight_bits[(1,)](x, y, z, BLOCK=1024)
            same(y.view(torch.uint8), x.to(kind).view(torch.uint8))
            same(z, y.bfloat16())
