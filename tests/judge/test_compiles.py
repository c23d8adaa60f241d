"""What results of compiling ahead mean for a verdict."""

from __future__ import annotations

import pytest

from orchestrator.judge import ahead
from orchestrator.judge.ahead import CompileResult
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.compiles import compiles
from orchestrator.records import Compiled, Status

HERE = "k.py, line 3, in k: x = 1"


def good(target: str, shared_bytes: int = 0) -> CompileResult:
    compiled = Compiled("k", target, warps=4, stages=3, shared_bytes=shared_bytes)
    return CompileResult("k", target, ok=True, compiled=compiled)


def multiplied(kind: str, *, tf32: bool = True) -> CompileResult:
    compiled = Compiled("k", "sm_90", warps=4, stages=3, tf32=tf32, types={"a": kind, "c": kind, "n": "i32"})
    return CompileResult("k", "sm_90", ok=True, compiled=compiled)


def bad(target: str) -> CompileResult:
    return CompileResult("k", target, ok=False, error=f"{HERE}\nNameError: y")


def late(target: str) -> CompileResult:
    return CompileResult("k", target, ok=False, limit=ahead.TOO_LATE)


def refused(results: list[CompileResult]) -> CandidateFailed:
    with pytest.raises(CandidateFailed) as raised:
        compiles(results, [])
    return raised.value


def test_what_does_not_compile_at_home_is_refused_with_its_line() -> None:
    failed = refused([bad("sm_90"), bad("sm_80"), good("gfx942")])
    assert failed.status is Status.COMPILE_ERROR
    assert failed.message.endswith(f"for sm_90, sm_80: {HERE} (NameError: y)") and "NameError: y" in failed.detail


def test_what_the_compiler_said_is_short_in_the_message() -> None:
    long = CompileResult("k", "sm_90", ok=False, error=f"{HERE}\nNameError: {'y' * 5000}\nmore")
    failed = refused([long])
    assert f"{HERE} (NameError: yyy" in failed.message and failed.message.endswith("yyy...)")
    assert len(failed.message) < 500 and "y" * 5000 in failed.detail


def test_too_much_shared_memory_says_how_much_is_needed_and_there() -> None:
    failed = refused([good("sm_90", shared_bytes=262_144)])
    assert failed.status is Status.COMPILE_ERROR
    assert "262144" in failed.message and "232448" in failed.message


def test_more_threads_than_a_program_may_have_do_not_fit() -> None:
    many = Compiled("k", "sm_90", warps=64, stages=3)
    failed = refused([CompileResult("k", "sm_90", ok=True, compiled=many)])
    assert failed.status is Status.COMPILE_ERROR
    assert "2048 threads" in failed.message and "1024" in failed.message


def test_float32_is_not_multiplied_in_tf32() -> None:
    failed = refused([multiplied("*fp32")])
    assert failed.status is Status.LOW_PRECISION and "input_precision" in failed.message
    compiles([multiplied("*bf16"), multiplied("*fp32", tf32=False)], [])


@pytest.mark.parametrize("other", [bad("gfx942"), bad("sm_80"), good("sm_80", shared_bytes=200_000)])
def test_what_fails_elsewhere_only_is_a_note(other: CompileResult) -> None:
    notes: list[str] = []
    compiles([good("sm_90"), other], notes)
    assert len(notes) == 1 and notes[0].startswith(f"does not compile for {other.target}: ")
    assert ("NameError: y" in notes[0]) is bool(other.error)


def test_nothing_of_a_kernel_in_time_is_no_verdict_and_some_of_it_is_a_note() -> None:
    assert refused([late("sm_90"), good("sm_80")]).status is Status.INFRASTRUCTURE
    notes: list[str] = []
    compiles([good("sm_90"), late("sm_90")], notes)
    assert notes == [f"not every specialization was compiled: k for sm_90: {ahead.TOO_LATE}"]
