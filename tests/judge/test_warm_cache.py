"""What Triton compiled in one folder is found again in another, and only by the same kernel file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.judge.ahead import Cache, CompileResult, Specialization
from orchestrator.judge.warm_cache import WarmCache
from tests.conftest import ZOO

KERNEL = ZOO / "kernels" / "good.py"
COMPILE = """
import importlib.util, sys
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import triton

spec = importlib.util.spec_from_file_location("k", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
hits = []
knobs.compilation.listener = lambda *, cache_hit, **_: hits.append(cache_hit)
types = {"x_ptr": "*fp32", "w_ptr": "*fp32", "y_ptr": "*fp32", "N": "i32", "eps": "fp32", "BLOCK": "constexpr"}
triton.compile(ASTSource(module._kernel, types, {"BLOCK": 64}), target=GPUTarget("cuda", 90, 32))
print(hits)
"""


def compiled(cache: Path) -> str:
    """Whether Triton found the kernel in that cache, as it says."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(KERNEL)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_next_process_of_the_same_file_compiles_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "triton", tmp_path / "second" / "triton"
    kept = WarmCache(tmp_path / "kept", {"triton": "3"})
    assert not kept.give(KERNEL, first)
    assert not first.exists() and compiled(first) == "[False]"
    kept.take(KERNEL, first)
    assert kept.give(KERNEL, second)
    (tmp_path / "first").rename(tmp_path / "gone")
    assert compiled(second) == "[True]"


def test_other_bytes_and_other_versions_find_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "scratch" / "triton"
    cache.mkdir(parents=True)
    (cache / "file").write_text("x")
    WarmCache(tmp_path / "kept", {"triton": "3"}).take(KERNEL, cache)
    other = tmp_path / "other.py"
    other.write_bytes(KERNEL.read_bytes() + b"\n")
    for kernel, version in ((other, "3"), (KERNEL, "4")):
        WarmCache(tmp_path / "kept", {"triton": version}).give(kernel, tmp_path / "new")
        assert not (tmp_path / "new").exists()
    WarmCache(tmp_path / "kept", {"triton": "3"}).give(KERNEL, tmp_path / "new")
    assert (tmp_path / "new" / "file").read_text() == "x"


def test_links_are_not_followed(tmp_path: Path) -> None:
    """The cache was a candidate's to write; the judge reads it unconfined."""
    secret, cache = tmp_path / "secret", tmp_path / "scratch" / "triton"
    secret.mkdir()
    (secret / "key").write_text("planted")
    cache.mkdir(parents=True)
    (cache / "folder").symlink_to(secret)
    (cache / "file").symlink_to(secret / "key")
    (cache / "own").write_text("x")
    kept = WarmCache(tmp_path / "kept", {})
    kept.take(KERNEL, cache)
    kept.give(KERNEL, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").rglob("*")] == ["own"]


@pytest.mark.parametrize("folder_is_link", [True, False])
def test_a_cache_that_is_a_link_or_missing_is_not_kept(tmp_path: Path, folder_is_link: bool) -> None:
    cache = tmp_path / "triton"
    if folder_is_link:
        (tmp_path / "secret").mkdir()
        (tmp_path / "secret" / "key").write_text("planted")
        cache.symlink_to(tmp_path / "secret")
    kept = WarmCache(tmp_path / "kept", {})
    kept.take(KERNEL, cache)
    kept.give(KERNEL, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_costs_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = tmp_path / "triton"
    cache.mkdir()
    (cache / "own").write_text("x")
    kept = WarmCache(tmp_path / "file" / "kept", {})
    kept.take(KERNEL, cache)
    kept.give(KERNEL, tmp_path / "new")
    results = Cache(tmp_path / "file" / "compiled", b"", "3")
    results.keep(Specialization("k", 1), "sm_90", CompileResult("k", "sm_90", ok=True))
    assert results.known(Specialization("k", 1), "sm_90") is None
