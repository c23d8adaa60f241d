"""Kernels that Triton's interpreter runs and its compiler refuses: each `run_*` ends well here and must not compile."""

import numpy
import torch
import triton
import triton.language as tl

SCALE = 3.0


@triton.jit
def a_list(X, BLOCK: tl.constexpr):
    parts = []
    for i in range(3):
        parts.append(i * 2.0)
    tl.store(X + tl.arange(0, BLOCK), parts[1] + parts[2])


@triton.jit
def a_dict(X, BLOCK: tl.constexpr):
    by_name = {"a": 1.0, "b": 2.0}
    tl.store(X + tl.arange(0, BLOCK), by_name["a"] + by_name["b"])


@triton.jit
def global_number(X, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(X + c, tl.load(X + c) * SCALE)


@triton.jit
def numpy_call(X, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(X + c, tl.load(X + c) * float(numpy.sqrt(4.0)))


@triton.jit
def try_except(X, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    try:
        tl.store(X + c, tl.load(X + c) * 2)
    except ValueError:
        pass


@triton.jit
def chained_comparison(X, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    if 0 <= n < 10:
        tl.store(X + c, tl.load(X + c) * 2)


@triton.jit
def changes_its_type(X, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    total = 0
    for i in range(n):
        total = total + tl.load(X + c) * i
    tl.store(X + c, total)


def run_a_list():
    a_list[(1,)](torch.ones(16), BLOCK=16)


def run_a_dict():
    a_dict[(1,)](torch.ones(16), BLOCK=16)


def run_global_number():
    global_number[(1,)](torch.ones(16), BLOCK=16)


def run_numpy_call():
    numpy_call[(1,)](torch.ones(16), BLOCK=16)


def run_try_except():
    try_except[(1,)](torch.ones(16), BLOCK=16)


def run_chained_comparison():
    chained_comparison[(1,)](torch.ones(16), 5, BLOCK=16)


def run_changes_its_type():
    changes_its_type[(1,)](torch.ones(16), 5, BLOCK=16)


def run_unknown_option():
    fine[(1,)](torch.ones(16), BLOCK=16, num_wraps=4)


@triton.jit
def fine(X, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(X + c, tl.load(X + c) * 2)
