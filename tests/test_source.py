"""Reading bytes into facts: what cannot be read is one finding, never an exception."""

from __future__ import annotations

import pytest

from orchestrator.records import Finding, Status
from orchestrator.source import MAX_BYTES, MAX_DEPTH, TEXT_LIMIT, Source, integers, read

KERNEL = b"""\
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice as ld


@triton.autotune(configs=[], key=["n"])
@triton.jit
def _k(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, n)


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        _k[(1,)](x, 1, BLOCK=1)
        return x


def entry(x):
    return F.apply(x)
"""


def problem(data: bytes) -> Finding:
    found = read(data, "k.py")
    assert isinstance(found, Finding), found
    return found


def source(data: bytes) -> Source:
    found = read(data, "k.py")
    assert isinstance(found, Source), found
    return found


@pytest.mark.parametrize(
    ("data", "status", "message", "line"),
    [
        (b"", Status.COMPILE_ERROR, "empty", 1),
        (b" \n\t\n", Status.COMPILE_ERROR, "empty", 1),
        (b"x = 1\ny = '\xff'\n", Status.COMPILE_ERROR, "not UTF-8", 2),
        (b"x = 1\ndef f(:\n", Status.COMPILE_ERROR, "syntax error", 2),
        (b"# coding: utf-7\nx = 1\n", Status.FORBIDDEN, "utf-7", 1),
        (b"#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n", Status.FORBIDDEN, "latin-1", 1),
        (b"# coding: no-such-codec\n", Status.FORBIDDEN, "no-such-codec", 1),
        (b"\xef\xbb\xbfx = 1\n", Status.FORBIDDEN, "U+FEFF", 1),
        ("\ufeffx = 1\n".encode("utf-16"), Status.COMPILE_ERROR, "not UTF-8", 1),
        (b"x = 1\n\x00y = 2\n", Status.FORBIDDEN, "U+0000", 2),
        ("x = 1  # \u202e}\n".encode(), Status.FORBIDDEN, "U+202E", 1),
        ("x = 1\ny\u200b = 2\n".encode(), Status.FORBIDDEN, "U+200B", 2),
        ("x = 1\nﬂoat = 2\n".encode(), Status.FORBIDDEN, "'float'", 2),
        ("y = 1\ny.ｍean\n".encode(), Status.FORBIDDEN, "'mean'", 2),
        (b"x" * (MAX_BYTES + 1), Status.FORBIDDEN, "larger", 1),
    ],
)
def test_unreadable(data: bytes, status: Status, message: str, line: int) -> None:
    found = problem(data)
    assert found.status is status
    assert message in found.message
    assert found.where == f"k.py:{line}"
    assert found.advice


@pytest.mark.parametrize(
    "data",
    [
        b"# -*- coding: utf-8 -*-\nx = 1\n",
        b"# coding: UTF_8\nx = 1\n",
        b"x = 1\n# coding: latin-1 in the second line counts only after a blank or comment line\n",
        b"x = 1\r\ny = 2\r\n",
        b'"""A docstring with \\d."""\n',
        "x = 'größe'  # naïve\nσ = 1\n".encode(),
    ],
)
def test_readable(data: bytes) -> None:
    source(data)


@pytest.mark.parametrize("opening", [b"(", b"[", b"-", b"not ", b"lambda: "])
def test_deep_nesting_is_the_candidates_error(opening: bytes) -> None:
    closing = {b"(": b")", b"[": b"]"}.get(opening, b"")
    for depth in (MAX_DEPTH + 1, 2_000, 50_000):
        data = b"x = " + opening * depth + b"1" + closing * depth + b"\n"
        if opening != b"(" or depth > MAX_DEPTH + 100:  # parentheses leave no trace in the tree
            assert problem(data).status is Status.COMPILE_ERROR


def test_a_long_chain_is_too_deep() -> None:
    assert problem(b"x = " + b"1 + " * 5_000 + b"1\n").status is Status.COMPILE_ERROR


def test_a_long_integer_is_the_candidates_error() -> None:
    assert problem(b"x = " + b"1" * 10_000 + b"\n").status is Status.COMPILE_ERROR


def test_the_quoted_line_is_capped() -> None:
    found = problem(b"x = 1 " + b"1" * 500 + b"\n")
    assert len(found.text) <= TEXT_LIMIT


def test_facts() -> None:
    facts = source(KERNEL)
    assert [kernel.name for kernel in facts.kernels] == ["_k"]
    assert [function.name for function in facts.host_functions] == ["entry", "forward"]
    assert facts.paths["tl"] == "triton.language"
    assert facts.paths["ld"] == "triton.language.extra.libdevice"
    assert [item.bases for item in facts.classes] == [("torch.autograd.Function",)]
    assert [(launch.kernel, launch.call.lineno) for launch in facts.launches] == [("_k", 16)]
    assert facts.function("entry") is not None
    assert facts.function("forward") is None, "a method is not a top-level function"


def test_a_kernel_may_be_made_by_a_call() -> None:
    facts = source(b"import triton as t\nfrom triton import jit\ndef f(): pass\nk = jit(f)\n@jit\ndef g(): pass\n")
    assert [kernel.name for kernel in facts.kernels] == ["f", "g"]


def test_lines_are_counted_as_python_counts_them() -> None:
    facts = source("x = '\u2028'\n\x0c\ny = 1\n".encode())
    found = facts.finding(Status.FORBIDDEN, facts.tree.body[1], "m", "a")
    assert (found.where, found.text) == ("k.py:3", "y = 1")


def test_the_numbers_of_a_file_those_that_are_compared_first() -> None:
    found = read(b"SIZE = 1 << 12\ndef f(n, m):\n    return n == 5 * 1024 or m in (7, 9) or n * 3\n", "k.py")
    assert isinstance(found, Source)
    compared, others = integers(found)
    assert compared == (5120, 7, 9) and set(others) == {4096, 1, 12, 5, 1024, 3}
    many = "\n".join(f"    if n == {number}: pass" for number in range(1000, 1100))
    found = read(f"def f(n):\n{many}\n".encode(), "k.py")
    assert isinstance(found, Source) and len(integers(found)[0]) == 100, "none is kept out by those before it"
