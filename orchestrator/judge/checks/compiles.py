"""What was launched in Triton's interpreter compiles for real targets.

Only without a GPU. Rests on evidence: the candidate's process says what it launched.
Catches: a kernel that only the interpreter takes (Python values, shapes that are no power of two, names that the
language lacks), and one that needs more shared memory than a card has.
Cannot catch: a launch that the candidate's process hides; what compiles and is wrong on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.judge import ahead
from orchestrator.judge.ahead import CompileResult
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.records import Status

HOME = "sm_90"  # what `interpreter.stand_in` says the GPU is: there it must compile, elsewhere a failure is a note


def compiles(results: Sequence[CompileResult], notes: list[str]) -> None:
    """Raises CandidateFailed where something does not compile at home, or nothing of a kernel did in time."""
    faults = {target: _faults(results, target) for target in ahead.TARGETS}
    if at_home := faults[HOME]:
        others = [target for target in ahead.TARGETS if faults[target] and target != HOME]
        first = at_home[0].splitlines()[0]
        message = f"runs in Triton's interpreter, but does not compile for {', '.join([HOME, *others])}: {first}"
        raise CandidateFailed(Status.COMPILE_ERROR, message, at_home[0])
    notes += [f"does not compile for {target}: {found[0].splitlines()[0]}" for target, found in faults.items() if found]
    done = {result.kernel for result in results if result.ok and result.target == HOME}
    late = {result.kernel for result in results if result.limit == ahead.TOO_LATE}
    if never := sorted(late - done):
        message = f"cannot be judged without a GPU: {never[0]} was not compiled for {HOME} in time"
        raise CandidateFailed(Status.INFRASTRUCTURE, f"{message}; raise judge.limits.compile_s")
    untried = {f"{result.kernel} for {result.target}: {result.limit}" for result in results if result.limit}
    notes += [f"not every specialization was compiled: {reason}" for reason in sorted(untried)]


def _faults(results: Sequence[CompileResult], target: str) -> list[str]:
    """What is wrong with the kernels on that target, in words."""
    most = ahead.SHARED_LIMIT_BYTES[target]
    here = [result for result in results if result.target == target]
    return [result.error for result in here if result.error] + [
        f"{result.kernel} is out of resources: it needs {needs} bytes of shared memory, {most} are there"
        for result in here
        if result.compiled is not None and (needs := result.compiled.shared_bytes or 0) > most
    ]
