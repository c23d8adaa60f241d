"""Reductions and scans by a kernel's own function."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def moments(X, Y, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    m = (c < N)[None, :] & (r < ROWS)[:, None]
    x = tl.load(X + r[:, None] * N + c[None, :], mask=m, other=0.0)
    mean, m2, n = tl.reduce((x, x * 0.0, m.to(tl.float32)), 1, welford)
    tl.store(Y + r, mean)
    tl.store(Y + ROWS + r, m2 / n)


def case_welford_for_halves_at_a_time():
    """Not for each of 8000 elements: it is called as often as a row can be halved, give or take."""
    x, y, calls = torch.randn(8, 1000), torch.empty(2, 8), []
    sys.setprofile(lambda frame, event, _: calls.append(event) if frame.f_code.co_name == "welford" else None)
    try:
        moments[(1,)](x, y, 1000, ROWS=8, BLOCK=1024)
    finally:
        sys.setprofile(None)
    assert torch.allclose(y[0], x.mean(1), atol=1e-5) and torch.allclose(y[1], x.var(1, correction=0), atol=1e-4), y
    assert 0 < calls.count("call") < 100, calls.count("call")


@triton.jit
def larger(value_a, index_a, value_b, index_b):
    take = (value_a > value_b) or (value_a == value_b and index_a < index_b)
    return tl.where(take, value_a, value_b), tl.where(take, index_a, index_b)


@triton.jit
def best(X, V, I, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c, mask=c < N, other=float("-inf"))
    v, i = tl.reduce((x, c), 0, larger)
    tl.store(V, v)
    tl.store(I, i)


def case_own_argmax_sometimes():
    x, v, i = torch.randn(100).half(), torch.empty(1).half(), torch.empty(1, dtype=torch.int32)
    best[(1,)](x, v, i, 100, BLOCK=128)
    assert v.item() == x.max() and i.item() == x.argmax(), (v, i)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scans(A, B, Y, ROWS: tl.constexpr, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    _, h = tl.associative_scan((tl.load(A + at), tl.load(B + at)), 1, recurrence, reverse=REVERSE)
    tl.store(Y + at, h)


def case_scan_by_blocks_controls():
    for reverse in (False, True):
        a, b, y = torch.rand(4, 16), torch.randn(4, 16), torch.empty(4, 16)
        scans[(1,)](a, b, y, ROWS=4, BLOCK=16, REVERSE=reverse)
        order = range(15, -1, -1) if reverse else range(16)
        h, want = torch.zeros(4), torch.empty(4, 16)
        for t in order:
            h = a[:, t] * h + b[:, t]
            want[:, t] = h
        assert torch.allclose(y, want, atol=1e-5), (y - want).abs().max()


@triton.jit
def whole(X, Y, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(X + at)
    tl.store(Y, tl.reduce(x, None, multiply))
    kept = tl.reduce(x, 0, multiply, keep_dims=True)
    tl.store(Y + 1 + tl.arange(0, BLOCK)[None, :], kept)


def case_shapes_of_reductions_controls():
    x, y = torch.rand(4, 8) + 0.5, torch.empty(9)
    whole[(1,)](x, y, ROWS=4, BLOCK=8)
    assert torch.allclose(y[0], x.prod()) and torch.allclose(y[1:], x.prod(0)), y


@triton.jit
def values(Y, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(Y + tl.arange(0, BLOCK), tl.full((BLOCK.value,), 2.0, DTYPE.value))


def case_values_of_constants():
    y = torch.empty(16)
    values[(1,)](y, DTYPE=tl.float32, BLOCK=16)
    assert torch.equal(y, torch.full((16,), 2.0))


def case_attributes_of_a_compiled_kernel():
    assert values.src.startswith("def values") and values.params[1].is_constexpr and values.cache_key
