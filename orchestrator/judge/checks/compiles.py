"""What was launched in Triton's interpreter compiles for real targets, and computes there what it computed here.

Only without a GPU. Rests on evidence: the candidate's process says what it launched.
Catches: a kernel that only the interpreter takes (Python values, shapes that are no power of two, names that the
language lacks), one that needs more shared memory or threads than a card has, and a product of float32 that a GPU
would take in TF32.
Cannot catch: a launch that the candidate's process hides; what else compiles and is wrong on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.judge import ahead
from orchestrator.judge.ahead import CompileResult
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.records import Compiled, Status

HOME = "sm_90"  # what `interpreter.stand_in` says the GPU is: there it must compile, elsewhere a failure is a note
_LANES = {"gfx942": 64}  # threads of a warp; 32 elsewhere
_THREADS = 1024  # the most of one program, on every card
_REASON = 300  # characters of what the compiler said that stand in a message
_FLOATS = ("*fp", "*bf")  # the types of pointers to floating-point elements begin so


def compiles(results: Sequence[CompileResult], notes: list[str]) -> None:
    """Raises CandidateFailed where something does not compile at home, nothing of a kernel did in time, or what did is
    less precise than what was compared."""
    faults = {target: _faults(results, target) for target in ahead.TARGETS}
    if at_home := faults[HOME]:
        others = [target for target in ahead.TARGETS if faults[target] and target != HOME]
        where = ", ".join([HOME, *others])
        message = f"runs in Triton's interpreter, but does not compile for {where}: {_in_short(at_home[0])}"
        raise CandidateFailed(Status.COMPILE_ERROR, message, at_home[0])
    notes += [f"does not compile for {target}: {_in_short(found[0])}" for target, found in faults.items() if found]
    done = {result.kernel for result in results if result.ok and result.target == HOME}
    late = {result.kernel for result in results if result.limit == ahead.TOO_LATE}
    if never := sorted(late - done):
        message = f"cannot be judged without a GPU: {never[0]} was not compiled for {HOME} in time"
        raise CandidateFailed(Status.INFRASTRUCTURE, f"{message}; raise judge.limits.compile_s")
    untried = {f"{result.kernel} for {result.target}: {result.limit}" for result in results if result.limit}
    notes += [f"not every specialization was compiled: {reason}" for reason in sorted(untried)]
    _as_precise([result.compiled for result in results if result.compiled is not None and result.target == HOME])


def _in_short(fault: str) -> str:
    """Its place and what the compiler said there, which the place alone does not show."""
    place, *said = fault.splitlines()
    return f"{place} ({said[0][:_REASON]}{'...' if len(said[0]) > _REASON else ''})" if said else place


def _faults(results: Sequence[CompileResult], target: str) -> list[str]:
    """What is wrong with the kernels on that target, in words."""
    here = [result for result in results if result.target == target]
    made = [result.compiled for result in here if result.compiled is not None]
    return [result.error for result in here if result.error] + [
        f"{one.kernel} is out of resources: it needs {needs} {what}, {most} are there"
        for one in made
        for needs, what, most in (
            (one.shared_bytes or 0, "bytes of shared memory", ahead.SHARED_LIMIT_BYTES[target]),
            (one.warps * _LANES.get(target, 32), "threads", _THREADS),
        )
        if needs > most
    ]


def _as_precise(made: Sequence[Compiled]) -> None:
    """Raises CandidateFailed where float32 alone goes in and is multiplied in TF32, the default of `tl.dot`: the
    interpreter has multiplied it exactly. From half precision the ten bits of TF32 take nothing away."""
    for one in made:
        floats = {kind for kind in one.types.values() if kind.startswith(_FLOATS)}
        if one.tf32 and floats == {"*fp32"}:
            raise CandidateFailed(
                Status.LOW_PRECISION,
                f"{one.kernel} multiplies float32 in TF32 on a GPU, which keeps ten bits of each factor; the "
                'interpreter keeps all: give tl.dot input_precision="ieee" or "tf32x3"',
            )
