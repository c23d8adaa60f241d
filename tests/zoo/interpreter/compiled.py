"""Honest kernels: each `run_*` ends well in the interpreter and what it launches compiles for every target."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(a, b):
    return a + b


@triton.jit(do_not_specialize=["kept"])
def types(
    X,
    Y,
    n,
    large,
    unit,
    eps,
    flag,
    none,
    kept,
    wide: tl.int64,
    DTYPE: tl.constexpr,
    OP: tl.constexpr,
    SIZES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c * unit, mask=c < n, other=0.0).to(DTYPE)
    y = OP(x, eps.to(tl.float32)) * SIZES[1]
    if flag:
        y += kept
    if none is None:
        y += (large + wide).to(tl.float32)
    tl.store(Y + c, y, mask=c < n)


def run_types():
    x, y = torch.ones(64).bfloat16(), torch.empty(65)[1:]
    types[(1,)](
        x, y, 48, 2**40, 1, 1e-6, True, None, 16, 5, tl.float32, add, (4, 8), BLOCK=64, num_warps=8, num_stages=2
    )


@triton.jit
def rms(X, W, Y, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(X + row * stride + c, mask=m, other=0.0).to(tl.float32)
    w = tl.load(W + c, mask=m, other=0.0)
    rstd = libdevice.rsqrt(tl.sum(x * x, axis=0) / N + eps.to(tl.float32))
    tl.store(Y + row * stride + c, (x * rstd).to(w.dtype) * w, mask=m)


def run_rms():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x, w = torch.randn(3, 100).to(dtype), torch.randn(100).to(dtype)
        rms[(3,)](x, w, torch.empty_like(x), x.stride(0), 100, 1e-6, BLOCK=128)


@triton.jit
def size(Y, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    for i in range(0, n, BLOCK):
        tl.store(Y + i + c, i.to(tl.float32), mask=i + c < n)


def run_sizes():
    for n in (64, 128, 100, 1):
        size[(1,)](torch.empty(128), n, BLOCK=64)


@triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=32), triton.Config({"BLOCK": 64})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(X, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (c < n) and (c >= 0)
    tl.store(X + c, max(min(c, 100), 1), mask=inside)


def run_tuned():
    tuned[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](torch.empty(300), 300)


@triton.jit
def matmul(A, B, C, K, S: tl.constexpr):
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in range(0, K, S):
        a = tl.load(A + i[:, None] * K + k + i[None, :])
        b = tl.load(B + (k + i[:, None]) * S + i[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(C + i[:, None] * S + i[None, :], acc.to(C.dtype.element_ty))


def run_matmul():
    a, b = torch.randn(32, 64).half(), torch.randn(64, 32).half()
    matmul[(1,)](a, b, torch.empty(32, 32).half(), 64, S=32)


class Strides(NamedTuple):
    row: int
    column: int


@triton.constexpr_function
def bits(n):
    return n.bit_length() - 1


@triton.jit
def told(X, Y, strides, BLOCK: tl.constexpr, LOWEST: tl.constexpr, FORM: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + strides.row + c * strides.column, mask=c < FORM.row, other=LOWEST)
    tl.store(Y + c, x * (1 << bits(BLOCK)))


def run_told():
    told[(1,)](torch.randn(64), torch.empty(64), Strides(0, 1), BLOCK=64, LOWEST=float("-inf"), FORM=Strides(60, 1))
