"""What was launched in the interpreter is compiled for real targets; what only the interpreter takes is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.judge import ahead
from orchestrator.judge.ahead import CompileResult, Specialization, forks

HERE = Path(__file__).parent
ZOO = HERE.parent / "zoo"
ONLY_INTERPRETED = ZOO / "interpreter" / "only_interpreted.py"
COMPILED = ZOO / "interpreter" / "compiled.py"


def run(interpret: bool, *arguments: str) -> Any:
    environment = os.environ | {"PYTHONPATH": str(HERE.parents[1]), "TRITON_CACHE_DIR": tempfile.mkdtemp()}
    environment.pop("TRITON_INTERPRET", None)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    done = subprocess.run(
        [sys.executable, __file__, *arguments], env=environment, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@cache
def recorded(path: Path) -> dict[str, list[Specialization]]:
    """What each `run_*` function of a file launched, in the repaired interpreter."""
    answer = run(True, "record", str(path))
    return {name: [ahead.specialization_from_json(text) for text in texts] for name, texts in answer.items()}


@cache
def compiled(path: Path) -> dict[str, list[CompileResult]]:
    """What compiling all of that for all targets came to."""
    jobs = [(name, one) for name, several in recorded(path).items() for one in several]
    texts = json.dumps([one.to_json() for _, one in jobs])
    results = [ahead.result_from_json(text) for text in run(False, "compile", str(path), texts)]
    found: dict[str, list[CompileResult]] = {name: [] for name in recorded(path)}
    for index, result in enumerate(results):
        found[jobs[index // len(ahead.TARGETS)][0]].append(result)
    return found


@cache
def beside() -> Any:
    """What compiling two launches beside a sweep came to."""
    texts = [one.to_json() for several in recorded(COMPILED).values() for one in several][:2]
    script = str(HERE / "compiled_beside.py")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {
        "PYTHONPATH": str(HERE.parents[1])
    }
    command = [sys.executable, script, str(COMPILED), json.dumps(texts)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_was_launched_so_far_is_compiled_before_anybody_asks() -> None:
    assert beside()["cached"] == [True] * 2 * len(ahead.TARGETS)
    assert beside()["seconds"] < 60


def test_a_sweep_that_ends_does_not_wait_for_it() -> None:
    assert beside()["ended"] < 10, "a file that never imports was being compiled"
    assert beside()["after"], "and the next is compiled as ever"


def test_what_fails_beside_a_sweep_is_heard_after_it() -> None:
    assert len(beside()["raises"]) == 2 * len(ahead.TARGETS)
    assert all(
        "cannot be imported where Triton compiles: RuntimeError: not here" in text for text in beside()["raises"]
    )


def test_what_compiles_beside_the_candidate_cannot_write_where_it_reads() -> None:
    """Nobody watches it: it could compute with torch what the candidate then hands over."""
    assert sorted(beside()["left"]) == ["k.py", "scratch"]


def test_what_is_no_list_of_launches_is_tampering() -> None:
    assert beside()["refused"] == ["TAMPERED"] * 4, "no list, no texts, no specializations, more than are kept"


def functions(path: Path) -> list[str]:
    return re.findall(r"^def (run_\w+)", path.read_text(), re.M)


@pytest.mark.parametrize("name", functions(ONLY_INTERPRETED))
def test_what_only_the_interpreter_takes_is_refused_with_its_line(name: str) -> None:
    results = compiled(ONLY_INTERPRETED)[name]
    assert [result.target for result in results] == list(ahead.TARGETS), "it must have run in the interpreter"
    for result in results:
        assert not result.ok and not result.limit
        assert re.match(rf"{ONLY_INTERPRETED.name}, line \d+, in \w+: \S", result.error), result.error


def test_the_line_is_the_kernels() -> None:
    (result, *_) = compiled(ONLY_INTERPRETED)["run_a_dict"]
    line = next(n for n, text in enumerate(ONLY_INTERPRETED.read_text().splitlines(), 1) if "by_name = {" in text)
    place, said, *excerpt = result.error.splitlines()
    assert place == f'only_interpreted.py, line {line}, in a_dict: by_name = {{"a": 1.0, "b": 2.0}}'
    assert said == "UnsupportedLanguageConstruct: unsupported AST node type: Dict" and excerpt[0].startswith("at 2:")


@pytest.mark.parametrize("name", functions(COMPILED))
def test_an_honest_kernel_compiles_for_every_target(name: str) -> None:
    results = compiled(COMPILED)[name]
    assert [result.target for result in results][: len(ahead.TARGETS)] == list(ahead.TARGETS)
    for result in results:
        assert result.ok and not result.error and not result.limit, (result.target, result.error, result.limit)
        facts = result.compiled
        assert facts is not None and (facts.kernel, facts.target) == (result.kernel, result.target)
        assert facts.shared_bytes is not None and facts.shared_bytes <= ahead.SHARED_LIMIT_BYTES[result.target]
        assert facts.registers and facts.spilled_bytes == 0 and facts.load_bits is not None and facts.store_bits
        assert facts.occupancy is not None and 0 < facts.occupancy <= 1


def test_types_are_those_of_a_gpu_launch() -> None:
    (one,) = recorded(COMPILED)["run_types"]
    assert one.types == {
        "X": "*bf16",
        "Y": "*fp32",
        "n": "i32",
        "large": "i64",
        "unit": "constexpr",
        "eps": "fp32",
        "flag": "u1",
        "none": "constexpr",
        "kept": "i32",
        "wide": "i64",
        "DTYPE": "constexpr",
        "OP": "constexpr",
        "SIZES": "constexpr",
        "BLOCK": "constexpr",
    }
    values = {path[0]: value for path, value in one.constants if len(path) == 1}
    names = list(one.types)
    assert values[names.index("unit")] == 1 and values[names.index("none")] is None
    assert values[names.index("DTYPE")] == {"dtype": "fp32"}
    assert values[names.index("OP")]["function"] == "add"
    assert values[names.index("SIZES")] == {"tuple": [4, 8]}
    aligned = {names[path[0]] for path, letters in one.attributes if "D" in letters}
    assert aligned == {"X", "n", "large"}, "Y is a view that begins off the grid"
    assert one.options == {"num_stages": 2, "num_warps": 8}


def test_kinds_of_launches_are_kept_once() -> None:
    sizes = [dict((path[0], value) for path, value in one.constants) for one in recorded(COMPILED)["run_sizes"]]
    assert len(sizes) == 3, "64 and 128 are of one kind, 100 another and 1 a constant"


def test_an_import_that_fails_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("import triton\n1 / 0\n")
    texts = run(False, "compile", str(file), json.dumps([Specialization("k", 3).to_json()]))
    result = ahead.result_from_json(texts[0])
    assert not result.ok and "ZeroDivisionError" in result.error and not result.limit


def test_a_kernel_made_at_run_time_is_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("import triton\n")
    texts = run(False, "compile", str(file), json.dumps([Specialization("make.<locals>.k", 3).to_json()]))
    assert all(ahead.result_from_json(text).limit for text in texts)


def test_where_triton_interprets_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(RuntimeError, match="interprets"):
        ahead.compile_all(COMPILED, [])


def test_importing_it_imports_neither_torch_nor_triton() -> None:
    code = "import sys, orchestrator.judge.ahead; print([m for m in ('torch', 'triton') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.stdout.strip() == "[]", done.stderr


def test_results_are_kept_by_source_specialization_target_and_version(tmp_path: Path) -> None:
    one, two = Specialization("k", 1), Specialization("k", 1, options={"num_warps": 8})
    result = CompileResult("k", "sm_90", ok=True, seconds=0.5)
    cache_ = ahead.Cache(tmp_path / "cache", b"source", "3.7.1")
    assert cache_.known(one, "sm_90") is None
    cache_.keep(one, "sm_90", result)
    assert cache_.known(one, "sm_90") == replace(result, cached=True)
    assert cache_.known(two, "sm_90") is None and cache_.known(one, "sm_80") is None
    assert ahead.Cache(tmp_path / "cache", b"other", "3.7.1").known(one, "sm_90") is None
    assert ahead.Cache(tmp_path / "cache", b"source", "3.6.0").known(one, "sm_90") is None
    cache_.keep(two, "sm_90", replace(result, ok=False, limit="compiling did not end in time"))
    assert cache_.known(two, "sm_90") is None, "what could not be tried is tried again"


def test_a_spoiled_cache_file_is_as_none(tmp_path: Path) -> None:
    one, cache_ = Specialization("k", 1), ahead.Cache(tmp_path, b"source", "3.7.1")
    cache_.keep(one, "sm_90", CompileResult("k", "sm_90", ok=True))
    (file,) = tmp_path.iterdir()
    file.write_text("{")
    assert cache_.known(one, "sm_90") is None


def ends_itself() -> str:
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def never_ends() -> str:
    time.sleep(60)
    return ""


def raises() -> str:
    raise ValueError("no")


def test_a_call_that_dies_or_hangs_takes_no_other_with_it() -> None:
    begun = time.monotonic()
    outcomes = forks.run([lambda: "x" * 100_000, ends_itself, raises, never_ends, lambda: "late"], 2, limit_s=2)
    assert time.monotonic() - begun < 10
    good, died, raised, hung, late = outcomes
    assert good.text == "x" * 100_000
    assert died.text is None and died.signal == signal.SIGKILL and "last words" in died.output
    assert raised.text is None and raised.signal is None and "ValueError: no" in raised.output
    assert hung.timed_out and hung.text is None
    assert late.text == "late"


def test_what_was_not_begun_in_time_is_said() -> None:
    outcomes = forks.run([partial(time.sleep, 60), lambda: "never begun"], 1, limit_s=0.3)  # type: ignore[list-item]
    assert [outcome.timed_out for outcome in outcomes] == [True, True]


def record(path: Path) -> dict[str, list[str]]:
    """In a process where Triton interprets: what each `run_*` function of the file launched."""
    from orchestrator.judge import interpreter

    interpreter.repair()
    interpreter.stand_in()
    sys.path.insert(0, str(path.parent))
    module, found = __import__(path.stem), {}
    for name in functions(path):
        interpreter.forget()
        getattr(module, name)()
        found[name] = [one.to_json() for one in interpreter.specializations()]
    return found


def compile_(path: Path, texts: str) -> list[str]:
    """In a process where Triton compiles."""
    asked = [ahead.specialization_from_json(text) for text in json.loads(texts)]
    return [
        result.to_json()
        for result in ahead.compile_all(path, [(one, target) for one in asked for target in ahead.TARGETS])
    ]


if __name__ == "__main__":
    print(
        json.dumps(record(Path(sys.argv[2])) if sys.argv[1] == "record" else compile_(Path(sys.argv[2]), sys.argv[3]))
    )
