"""What torch.compile made of a reference is found again by another process elsewhere, and for no other reference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from orchestrator.judge.timing.baselines import Maker, Spec
from orchestrator.judge.timing.kept_compiled import KeptCompiled
from orchestrator.measured import COMPILED, PICKED

SPEC = Spec(COMPILED, "ref.py", "scaled_ref", "compiled", "default")
REFERENCE = """import torch

def scaled_ref(x):
    return torch.exp(x - x.amax(-1, keepdim=True)) * FACTOR
"""


def compiled(folder: Path) -> dict[str, int]:
    """What the caches said while a process of its own compiled and called the reference of that folder."""
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "scratch" / "inductor")}
    command = [sys.executable, __file__, str(folder / SPEC.file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def laid_out(folder: Path, factor: str) -> Path:
    (folder / "scratch").mkdir(parents=True)
    (folder / SPEC.file).write_text(REFERENCE.replace("FACTOR", factor))
    return folder


def test_the_second_measurement_finds_what_the_first_compiled(tmp_path: Path) -> None:
    kept = KeptCompiled(tmp_path / "kept", {"torch": torch.__version__, "device": "this"})
    first, second, other = (laid_out(tmp_path / name, factor) for name, factor in zip("abc", "223", strict=True))
    assert compiled(first) == {"hits": 0, "misses": 1}
    kept.take(SPEC, first / SPEC.file, first / "scratch")

    assert kept.give(SPEC, second / SPEC.file, second / "scratch")
    assert compiled(second) == {"hits": 1, "misses": 0}

    kept.give(SPEC, other / SPEC.file, other / "scratch")
    assert not list((other / "scratch").iterdir()), "nothing of another reference is given"
    kept.forget(SPEC, second / SPEC.file, second / "scratch")
    assert not list((second / "scratch").glob("*/*")), "what fails is neither there any more"
    assert not kept.give(SPEC, second / SPEC.file, second / "scratch"), "nor given again"
    kept.take(SPEC, first / SPEC.file, first / "scratch")
    elsewhere = KeptCompiled(tmp_path / "kept", {"torch": torch.__version__, "device": "another"})
    elsewhere.give(SPEC, second / SPEC.file, other / "scratch")
    assert not list((other / "scratch").iterdir()), "nor what was picked on another card"


def test_what_was_said_of_compiled_code_is_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "inductor"
    cache.mkdir()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    (tmp_path / SPEC.file).write_text(REFERENCE.replace("FACTOR", "2"))
    narrow, wide = ({"x": torch.zeros(2, size)} for size in (3, 4))
    one, two = ("async_compile.triton('one')", "async_compile.triton('two')")
    first = Maker(SPEC.as_config(), str(tmp_path / SPEC.file), "ref")
    (cache / "aa.py").write_text(one)
    assert first.generated(narrow) == one
    (cache / "bb.py").write_text(two)
    pick = cache / "bb.best_config"
    pick.write_text('{"XBLOCK": 8}')
    assert first.generated(wide) == f"{two}\n{PICKED} XBLOCK=8"

    again = Maker(SPEC.as_config(), str(tmp_path / SPEC.file), "ref")
    assert not pick.exists(), "each process picks anew"
    assert [again.generated(inputs) for inputs in (wide, narrow)] == [two, one]
    pick.write_text('{"XBLOCK": 16}')
    assert again.generated(wide) == f"{two}\n{PICKED} XBLOCK=16"
    assert again.generated({"x": torch.zeros(9)}) == ""


def main() -> None:
    function = Maker(SPEC.as_config(), sys.argv[1], "ref").make()
    function(torch.randn(4, 33))
    from torch._dynamo.utils import counters

    found = counters["inductor"]
    print(json.dumps({"hits": found["fxgraph_cache_hit"], "misses": found["fxgraph_cache_miss"]}))


if __name__ == "__main__":
    main()
