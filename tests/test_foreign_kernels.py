"""How kernels from elsewhere are read: made to stand alone as text, asked about entry by entry, and never imported."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

# A package as the public ones are: helpers elsewhere, a decorator of its own, questions about the machine.
UTILS = """\
import functools

import torch
import triton

raise RuntimeError("a package under survey was imported")

LARGEST = 4096


def is_hip():
    return torch.version.hip is not None


def compare_version(package, version):
    return True


def libentry():
    return lambda fn: fn


def warps(n):
    return (16 if is_hip() else 32) if n > LARGEST else 4
"""
KERNEL = """\
import triton
import triton.language as tl
import torch

from pack.utils import compare_version, libentry, warps

if compare_version("triton", "3.0.0"):
    from triton.language.extra.libdevice import rsqrt
else:
    from triton.language.math import rsqrt


@libentry()
@triton.jit
def _kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=1.0)
    tl.store(y_ptr + cols, rsqrt(x), mask=cols < N)


def forward(x, scale):
    y = torch.empty_like(x)
    _kernel[(scale * 1,)](x, y, x.numel(), BLOCK=1024, num_warps=warps(x.numel()))
    return y


def mean(x):
    return forward(x, 1).mean()


def backward(dy):
    dx = torch.empty_like(dy)
    _kernel[(1,)](dy, dx, dy.numel(), BLOCK=1024)
    return dx.sum(0)


def rounded(dy):
    dx = torch.empty_like(dy, dtype=torch.float32)
    _kernel[(1,)](dy, dx, dy.numel(), BLOCK=1024)
    return dx.to(dy.dtype)
"""
GENERATED = "from pack.utils import pointwise_dynamic\n\n\n@pointwise_dynamic()\ndef f(x):\n    return x\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the package in it."""
    (tmp_path / "pack" / "ops").mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "utils.py").write_text(UTILS)
    (tmp_path / "pack" / "ops" / "rsqrt.py").write_text(KERNEL)
    (tmp_path / "pack" / "ops" / "generated.py").write_text(GENERATED)
    return tmp_path


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("foreign_kernels")


def test_a_file_is_made_to_stand_alone_and_every_change_is_said(site: Path, foreign: ModuleType) -> None:
    alone = foreign.standalone(site / "pack" / "ops" / "rsqrt.py", site, "pack")
    assert alone.stuck == "" and alone.complete
    assert "pack" not in alone.text and "libentry" not in alone.text
    assert alone.text.index("LARGEST = 4096") < alone.text.index("def warps")
    assert "libdevice import rsqrt" in alone.text and "math import rsqrt" not in alone.text
    assert alone.said == (
        "answered for CUDA: compare_version('triton', '3.0.0') is True",
        "dropped: the launcher's cache (@libentry)",
        "answered for CUDA: is_hip() is False",
        "copied in: LARGEST of pack/utils.py",
        "copied in: warps of pack/utils.py",
    )


def test_what_cannot_stand_alone_says_why(site: Path, foreign: ModuleType) -> None:
    alone = foreign.standalone(site / "pack" / "ops" / "generated.py", site, "pack")
    assert alone.text == "" and "pointwise_dynamic: its kernel's text is generated when it runs" in alone.stuck


def test_each_entry_is_asked_about_for_itself(site: Path, foreign: ModuleType) -> None:
    text = foreign.standalone(site / "pack" / "ops" / "rsqrt.py", site, "pack").text
    asked = {one.entry: one for one in foreign.ask(text, "pack/ops/rsqrt.py")}
    assert list(asked) == ["forward", "backward", "rounded"], "mean launches nothing itself"
    assert asked["forward"].own is None, asked["forward"].why
    assert asked["forward"].whole is None, "the rest of its file computes with torch, and never runs"
    assert asked["backward"].why.startswith("computes with torch: .sum") and "dx.sum(0)" in asked["backward"].why
    assert asked["rounded"].why.startswith("moves data by torch, nothing more: .to")
    assert not any(one.look for one in asked.values())


def test_a_refusal_that_names_no_torch_operation_is_to_be_looked_at(foreign: ModuleType) -> None:
    text = KERNEL.replace("from pack.utils import compare_version, libentry, warps\n", "")
    text = (
        text.replace("return dx.sum(0)", "return dx * 2").replace("@libentry()\n", "").replace("warps(x.numel())", "4")
    )
    text = text.replace('compare_version("triton", "3.0.0")', "triton.__version__")
    (backward,) = [one for one in foreign.ask(text, "k.py") if one.entry == "backward"]
    assert backward.look and "dx * 2" in backward.why


def test_packages_that_are_not_there_are_named(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "foreign_kernels.py"), "--site", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "not installed: liger-kernel, flag-gems" in result.stderr and "--site DIR" in result.stderr


@pytest.mark.long
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("liger_kernel", "flag_gems")),
    reason="liger-kernel and flag-gems are not installed: pip install -e '.[foreign]'",
)
def test_no_honest_kernel_of_the_public_libraries_is_called_a_fallback() -> None:
    result = subprocess.run(
        [sys.executable, str(BENCHMARKS / "foreign_kernels.py"), "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
