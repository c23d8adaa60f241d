"""Runs as they are left behind, made by the real recorder in real git: for tests of what is read of them afterwards.

Verdicts and figures are invented here. What a model or a candidate could write holds HTML that must never be obeyed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import config, measuring, plan, rounds
from orchestrator.attempt import Judged
from orchestrator.decide import Thresholds, decide
from orchestrator.measured import COMPILED, REFERENCE, Measured, ShapeTimings
from orchestrator.ops import Op
from orchestrator.recorder import Recorder
from orchestrator.records import (
    CaseResult,
    Finding,
    Judging,
    Prompt,
    Reply,
    Report,
    Run,
    Status,
    Turn,
    Usage,
    WrongElement,
)
from orchestrator.settle import conclude
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel
from tests.measurements import measured, timing

HOSTILE = "</pre></script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
H200 = Judging("NVIDIA H200", False, {"python": "3.12.3", "torch": "2.11.0", "triton": "3.6.0"}, ())
_ITEMSIZE = {"float32": 4, "float16": 2, "bfloat16": 2}
_COPY_GBPS, _LAUNCH_US = 4100.0, 2.0


def cases(*, odd_fails: bool) -> tuple[CaseResult, ...]:
    """A sweep; with `odd_fails` every N that is no power of two is wrong, the more so the larger the scale."""
    return tuple(_cases(odd_fails))


def _cases(odd_fails: bool) -> Iterator[CaseResult]:
    for dims in ((1, 1), (1, 7), (3, 127), (5, 128), (128, 255)):
        for dtype in _ITEMSIZE:
            for at, scale in enumerate((1e-3, 1.0, 1e3)):
                good = CaseResult(
                    *(f"{dtype}-M{dims[0]}xN{dims[1]}-scale{scale:g}", {"M": dims[0], "N": dims[1]}, dtype, scale),
                    *(False, Status.PASSED, {"eps": 1e-6}, 1e-4, 1e-4, 0, math.prod(dims), 0.2, 0.9),
                )
                if odd_fails and not math.log2(dims[1]).is_integer():
                    wrong = (WrongElement((0, 3), 0.5 * 10**at, 0.7), WrongElement((0, 5), float("nan"), -1.25))
                    yield replace(
                        good,
                        **{"status": Status.WRONG_VALUES, "wrong": 3, "first_wrong": wrong},
                        **{"tolerance_ratio": 20.0 * 30**at, "max_abs": 0.2 * 10**at},
                    )
                else:
                    yield good


def passed() -> Report:
    """Every case passed."""
    all_ = cases(odd_fails=False)
    message = f"{len(all_)} of {len(all_)} cases passed"
    return Report(
        *(Status.PASSED, message),
        **{"cases": all_, "expected_cases": len(all_), "nonce": "n", "seed": 7, "device": H200.device},
        versions=H200.versions,
        seconds={"total": 4.2},
    )


def wrong() -> Report:
    """Where N is no power of two, the values are wrong."""
    all_ = cases(odd_fails=True)
    return replace(
        passed(),
        **{
            "status": Status.WRONG_VALUES,
            "message": f"{sum(not one.passed for one in all_)} of {len(all_)} cases failed",
        },
        **{"cases": all_, "diagnosis": ("Only N that is no power of two fails: padded lanes reach the result.",)},
        detail=f"what it printed: {HOSTILE}",
    )


def forbidden() -> Report:
    """The policy refused it, quoting what stands there."""
    where = "rmsnorm_triton.py:12"
    return Report.rejected((Finding(Status.FORBIDDEN, where, HOSTILE, "reads the environment", "leave it out"),))


def timed(op: Op, lag: float) -> Measured:
    """A measurement of all the op's shapes; torch.compile takes `lag` times as long as the kernel."""
    bench = op.spec.bench
    deciding = [_timed(dims, dtype, lag, curve=False) for dims in bench.shapes for dtype in bench.dtypes]
    assert bench.curve is not None
    curve = [_timed(dims, bench.curve.dtype, lag, curve=True) for dims in bench.curve.shapes]
    return measured(*deciding, *curve, copy_gbps=_COPY_GBPS, launch_us=_LAUNCH_US)


def _timed(dims: Sequence[int], dtype: str, lag: float, *, curve: bool) -> ShapeTimings:
    elements = math.prod(dims)
    moved = (2 * elements + dims[-1]) * _ITEMSIZE[dtype]
    ideal = moved / _COPY_GBPS / 1e3 + 1.5
    us = ideal * (1.06 + 4 / (4 + math.log2(elements))) + 1.0
    compiled = us * lag * (1 + 0.02 * math.sin(dims[-1]))
    return ShapeTimings(
        **{"dims": dict(zip(("M", "N"), dims, strict=True)), "dtype": dtype, "bytes": moved, "flops": 4 * elements},
        **{"ideal_us": ideal, "candidate": timing("candidate", us), "curve": curve},
        baselines=(
            timing(REFERENCE, 4.2 * us),
            timing(COMPILED, compiled),
            timing("torch.nn.functional.rms_norm", 1.5 * us),
        ),
        twin=timing("twin", compiled * 1.004).latencies_us,
        twin_of=COMPILED,
    )


def usage(number: int) -> Usage:
    """What an attempt cost."""
    return Usage(latency_s=31.5 + number, input_tokens=5200 * number, output_tokens=2100, cost_usd=0.04 * number)


def run(
    op: Op,
    workspaces: Path,
    judged: Sequence[tuple[str, Judged]],
    found: Measured | None = None,
    run_id: str | None = None,
) -> Run:
    """A run in which these replies got these verdicts, one a round; measured where `found` is given, and decided."""
    recorder = Recorder.open(op, "anthropic", config.load(), workspaces, H200, Silent(), run_id)
    for number, (said, one) in enumerate(judged, 1):
        folder = recorder.asked(Prompt("system", (Turn("user", "write it"),)), "correct", number)
        code = (one.kernel or b"").decode()
        name = op.spec.kernel_name
        reply = Reply(f"{said}\n\n```python {name}\n{code}```\n", f"a-model {HOSTILE}", usage(number))
        recorder.answered(reply, folder)
        recorder.judged("correct", number, reply, one, folder)
    reason = "there is no GPU here"
    for challenger in rounds.challengers(recorder.run) if found is not None else ():
        folder, rivals = recorder.measures(challenger)
        measuring.keep(found, folder)
        reason = recorder.measured(challenger, found, rivals, 0, Thresholds().margin_floor)
    last, best = recorder.run.attempts[-1].status, recorder.run.best is not None
    conclude(recorder, decide(last, best, recorder.run.measurement, Thresholds(), unmeasured_reason=reason, rounds=3))
    return recorder.run


def night(workspaces: Path, *ops: str) -> plan.Plan:
    """A batch of these ops, planned and kept."""
    made = plan.new(tuple(plan.Wanted(op) for op in ops))
    plan.keep(made, workspaces)
    return made


def repaired(op: Op) -> list[tuple[str, Judged]]:
    """Wrong, refused, right: three rounds with words of the model."""
    first, last = zoo_kernel("divides_by_block"), zoo_kernel("good")
    hostile = b"# " + HOSTILE.encode() + b"\n" + last
    return [
        ("One row a program; the row is held in one block.", Judged(wrong(), first)),
        (
            f"The mean divides by BLOCK, not by N.\n\n{HOSTILE}\n\nI also read the device's name.",
            Judged(forbidden(), hostile),
        ),
        ("The environment is not needed: the block follows from N alone.", Judged(passed(), last)),
    ]


def two_nights(workspaces: Path, rmsnorm: Op, softmax: Op) -> tuple[Run, Run, Run, Run]:
    """Two batches: a merged kernel and a lost op, then one that is slower and one that could not be measured."""
    first = night(workspaces, rmsnorm.name, softmax.name)
    merged = run(rmsnorm, workspaces, repaired(rmsnorm), timed(rmsnorm, 1.18), first.ops[0].run)
    failing = [("It sums in float16.", Judged(wrong(), zoo_kernel("divides_by_block")))] * 3
    lost = run(softmax, workspaces, failing, None, first.ops[1].run)
    second = night(workspaces, rmsnorm.name, softmax.name)
    right = [("A plain one.", Judged(passed(), zoo_kernel("good")))]
    slower = run(rmsnorm, workspaces, right, timed(rmsnorm, 0.9), second.ops[0].run)
    unmeasured = run(softmax, workspaces, right, None, second.ops[1].run)
    return merged, lost, slower, unmeasured
