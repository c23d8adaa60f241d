"""Which files are the same kernel: what cannot change what it does does not matter, everything else does."""

from __future__ import annotations

import pytest

from orchestrator.fingerprint import fingerprint
from tests.conftest import ZOO

KERNEL = """import torch
import triton
import triton.language as tl

SIZE = 64


@triton.jit
def _k(x_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    for i in range(2):
        x += i
    tl.store(x_ptr + cols, x, mask=cols < n)


def f(x, eps=1e-6):
    m, n = x.shape
    _k[(1,)](x, n, BLOCK=SIZE)
    return x
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    cols = tl", "    # of the row\n    cols   =  tl"),
        ("def f(x, eps=1e-6):\n", 'def f(x, eps=1e-6):\n    """The entry."""\n'),
        ("import torch\n", '"""A file."""\nimport torch\n'),
        ("1e-6", "0.000001"),
        ("m, n = x.shape\n    _k[(1,)](x, n, ", "rows, width = x.shape\n    _k[(1,)](x, width, "),
        ("for i in range(2):\n        x += i", "for step in range(2):\n        x += step"),
        ("mask=cols < n, other=0.0)", "mask=(cols < n),\n        other=0.0)"),
    ],
)
def test_looks_do_not_matter(old: str, new: str) -> None:
    assert old in KERNEL and fingerprint(KERNEL.replace(old, new, 1).encode()) == fingerprint(KERNEL.encode())


def test_local_names_do_not_matter_wherever_they_stand() -> None:
    assert fingerprint(KERNEL.replace("cols", "at").encode()) == fingerprint(KERNEL.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SIZE = 64", "SIZE = 128"),
        ("other=0.0", "other=1.0"),
        ("other=0.0", "other=0"),
        ("1e-6", "1e-5"),
        ("BLOCK=SIZE)", "BLOCK=SIZE, num_warps=8)"),
        ("range(2)", "range(3)"),
        ("def f(x, eps", "def g(x, eps"),
        ("(x_ptr, n, ", "(n, x_ptr, "),
        ("m, n = x.shape", "n, m = x.shape"),
        ("tl.store(x_ptr + cols, x,", "tl.store(x_ptr + cols, cols,"),
        ("@triton.jit\n", "@triton.jit(do_not_specialize=['n'])\n"),
        ("    return x\n", "    return x.view(-1)\n"),
    ],
)
def test_everything_else_does(old: str, new: str) -> None:
    assert old in KERNEL and fingerprint(KERNEL.replace(old, new, 1).encode()) != fingerprint(KERNEL.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A = 1\nB = 2\ndef f():\n    def g():\n        A = 3\n    return A\n",
         "A = 1\nB = 2\ndef f():\n    def g():\n        B = 3\n    return B\n"),
        ("def f(a, b):\n    return a\n", "def f(a, b):\n    return b\n"),
        ("def f(a):\n    min = a\n    return min\n", "def f(a):\n    max = a\n    return min\n"),
        ("def f():\n    a = 1\n    b = 2\n    return a\n", "def f():\n    a = 1\n    b = 2\n    return b\n"),
        ("def f():\n    a = 1\n    a = 2\n", "def f():\n    a = 1\n    b = 2\n"),
        ("def f():\n    global a\n    a = 1\n", "def f():\n    global b\n    b = 1\n"),
        ("def f():\n    a = 1\n    return f'{a=}'\n", "def f():\n    b = 1\n    return f'{b=}'\n"),
        ("def f():\n    'x'\n    return 1\n", "def f():\n    return 'x'\n"),
    ],
)  # fmt: skip
def test_names_that_mean_different_things_stay_different(one: str, other: str) -> None:
    assert fingerprint(one.encode()) != fingerprint(other.encode())


def test_no_two_kernels_of_the_zoo_are_the_same() -> None:
    files = [*sorted((ZOO / "kernels").glob("*.py")), *sorted((ZOO / "ops").glob("*.py"))]
    parsed = [path for path in files if path.stem != "syntax_error"]
    assert len({fingerprint(path.read_bytes()) for path in parsed}) == len(parsed)
