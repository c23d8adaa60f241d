"""Whether an op's own checker is good enough: every decoy must be rejected by one of its cases.

Owns what becomes of each decoy. The op's committed test file runs in this process with the decoy where the kernel
would be; decoys are ours or the op's author's, so no candidate's process is needed. A decoy that is the reference
itself is not counted, and for that it must agree with it on further cases too: an op whose cases leave a fault out
cannot call it equivalent. Cases that differ from verdict to verdict reject nothing here: they would only at times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge import decoys, large, promises
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.compare import compared
from orchestrator.judge.decoys import Decoy
from orchestrator.judge.promises import RAISED, OwnFilesFail, broken
from orchestrator.judge.results import several
from orchestrator.records import DecoyResult, Fate, OpCheck, OpCheckJob, Status

_SEED = 0  # the same values each time: the result belongs to the op, not to the day
_OTHER_SEEDS = (1, 2)
_PROBED = ((3, 37, 5), (130, 6, 7))  # sizes of the dims, in turn, within what the op draws
_DIGITS = 1e-12  # agreement in float64 that only the order of a sum disturbs


@dataclass
class _Trial:
    """A decoy before the cases, and what is known of it so far."""

    decoy: Decoy
    fate: Fate | None = None
    case: str = ""
    status: Status | None = None
    detail: str = ""
    raised: str = ""  # on a case whose inputs it changes into ones that the reference does not take
    nearest: float = -1  # to being rejected, of the cases on which it differs and was let through; 1 rejects

    @property
    def differs(self) -> bool:
        """Whether a case has shown that it is not the reference."""
        return self.fate is not None or bool(self.case)

    def result(self) -> DecoyResult:
        """Its fate, once all cases are through."""
        fate = self.fate or (Fate.PASSED if self.case else Fate.UNMADE if self.raised else Fate.EQUIVALENT)
        if fate is Fate.UNMADE:
            return DecoyResult(self.decoy.name, self.decoy.about, fate, detail=self.raised)
        detail = f"{self.detail}: {self.decoy.advice}" if fate is Fate.PASSED else self.detail
        return DecoyResult(self.decoy.name, self.decoy.about, fate, self.case, self.status, detail)


def check(job: OpCheckJob, device: str, shown: str) -> OpCheck:
    """The fate of every decoy of the op. `device` is cpu or cuda, `shown` how the result names it."""
    begun = time.perf_counter()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # thousands of small operations: threads would only wait for each other
    try:
        results = _fates(job, device)
    except OwnFilesFail as failed:
        results = (failed.result,)
    finally:
        torch.set_num_threads(threads)
    return OpCheck(job.op, shown, results, round(time.perf_counter() - begun, 3))


def _fates(job: OpCheckJob, device: str) -> tuple[DecoyResult, ...]:
    stand_in = _StandIn(job.in_place)
    kernel = ModuleType(job.module)
    setattr(kernel, job.function, stand_in)
    with promises.own_files(job, kernel) as test:
        right = _Trial(Decoy("the reference", "not a decoy at all", getattr(test, job.reference), ""))
        trials = [_Trial(decoy) for decoy in _all_decoys(job, test)]
        bench = _Bench(job, test, device, stand_in)
        if unkept := bench.promise_not_kept():
            return (unkept,)
        for case in bench.fixed:
            bench.ask(case, [trial for trial in (right, *trials) if trial.fate is None])
        _look_further(bench, trials)
        refused = _refused(right)
    results = (_as_declared(trial.result(), job.equivalent) for trial in trials)
    return (*refused, *results, *_undeclarable(job, trials))


def _all_decoys(job: OpCheckJob, test: ModuleType) -> list[Decoy]:
    path = Path(job.folder) / "decoys.py"
    try:
        own = decoys.own(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else []
    except RAISED as error:  # the author's file, executed
        raise OwnFilesFail("decoys.py cannot be used: it", error) from error
    return [*decoys.made(job, getattr(test, job.reference)), *own]


def _look_further(bench: _Bench, trials: Sequence[_Trial]) -> None:
    """What no listed case tells from the reference: whether another case does."""
    asked = sum(bench.look(case, [trial for trial in trials if not trial.differs]) for case in bench.further())
    for trial in trials:
        if trial.differs:
            continue
        if not asked:
            trial.case, trial.detail = "no case", "equal on every listed case, and no further case could be made"
        elif trial.decoy.parameter and trial.decoy.parameter not in bench.varied:
            trial.case, trial.detail = "no case", f"none has another {trial.decoy.parameter} than its default"


def _refused(right: _Trial) -> list[DecoyResult]:
    """A checker that refuses the reference itself refuses everything, and its score says nothing."""
    if right.fate is None:
        return []
    detail = f"reference.py: it is refused where it stands for the kernel ({right.status}): {right.detail}"
    return [broken(detail, right.case)]


class _StandIn:
    """What the test file calls as the kernel."""

    def __init__(self, in_place: dict[str, int]) -> None:
        self._in_place = in_place
        self.decoy: Decoy | None = None

    def __call__(self, **arguments: Any) -> Any:
        """The decoy's results, those that the op promises in place written there: its fault is another."""
        assert self.decoy is not None
        result = self.decoy.function(**arguments)
        for name, index in self._in_place.items():
            arguments[name].copy_(several(result)[index])
        return result


class _Bench:
    """The op's test file: its cases, and what they say of decoys."""

    def __init__(self, job: OpCheckJob, test: ModuleType, device: str, stand_in: _StandIn) -> None:
        self._job = job
        self._test = test
        self._device = device
        self._stand_in = stand_in
        self._reference: Callable[..., Any] = getattr(test, job.reference)
        quick = device == "cpu" if job.quick is None else job.quick
        one, other = (test.holdouts(seed, quick) for seed in _OTHER_SEEDS)
        self.fixed = [*test.cases(quick), *test.telling(), *(case for case in one if case in other)]
        self._drawn = [case for case in (*one, *other) if case not in self.fixed]
        self.varied: set[str] = set()  # parameters that were not their defaults in some case

    def further(self) -> Iterator[Any]:
        """Cases that reject nothing: some drawn ones, and odd sizes with every kind of values and other parameters."""
        yield from self._drawn
        ranges = getattr(self._test, "HOLDOUT_RANGES", {})
        for first, sizes in product({case.dtype: case for case in self.fixed}.values(), _PROBED):
            dims = {
                dim: _within(ranges.get(dim, (1, max(sizes))), sizes[at % len(sizes)])
                for at, dim in enumerate(first.dims)
            }
            plain = replace(first, dims=dims, scale=1.0, parameters=dict(self._job.parameters), values="normal")
            yield from (replace(plain, values=kind) for kind in ("normal", *self._job.values))
            for name, value in self._job.parameters.items():
                if isinstance(value, int | float):
                    yield replace(plain, parameters=self._job.parameters | {name: value + 1})

    def promise_not_kept(self) -> DecoyResult | None:
        """Where the reference is not what op.yaml says of it, on a case for each dtype."""
        by_size = sorted(self.fixed, key=lambda case: math.prod(case.dims.values()))
        for case in {case.dtype: case for case in by_size[: len(by_size) // 2 + 1]}.values():  # of middle size
            inputs, _ = self._made(case)
            if unkept := promises.not_kept(self._job, self._reference, case, inputs):
                return unkept
            if unkept := self._not_parted(case, inputs):
                return unkept
            plain = self._test.Case(case.dims, case.dtype)  # as it is measured: no hard values
            if unkept := promises.other_baseline(self._job, self._test, plain, self._made(plain)[0]):
                return unkept
        return None

    def _not_parted(self, case: Any, inputs: dict[str, torch.Tensor]) -> DecoyResult | None:
        """Where an op has a large case, which is compared in parts, and its results cannot be."""
        if not hasattr(self._test, "run_in_parts"):
            return None
        self._stand_in.decoy = Decoy("the reference", "", self._reference, "")
        if large.figures(self._test, case, inputs)["status"] is Status.PASSED:
            return None
        along = self._test.ALONG
        return broken(
            f"op.yaml (sweep.large): the results depend on each other along {along}; name another dim", case.name
        )

    def ask(self, case: Any, trials: Sequence[_Trial]) -> None:
        """Whether the case rejects them, by the test file's own comparison."""
        inputs, exact = self._made(case)
        for trial in trials:
            self._stand_in.decoy = trial.decoy
            try:
                got, want = self._test.run(inputs, case.parameters)
            except RAISED as error:  # the author's code raises anything
                if trial.decoy.function is self._reference:
                    raise OwnFilesFail(f"reference.py: {self._job.reference}", error, case.name) from error
                if not trial.decoy.authored:
                    trial.raised = f"the reference raises {type(error).__name__} on what it would be given"
                    continue
                trial.fate, trial.case = Fate.BROKEN, case.name
                trial.detail = f"raised {type(error).__name__}: {error}: a decoy must return a result"
                continue
            self._judge(case, trial, got, want, inputs, exact)

    def look(self, case: Any, trials: Sequence[_Trial]) -> bool:
        """Note which are not the reference on this case; it rejects none. False where the op takes no such case."""
        try:
            inputs, exact = self._made(case)
        except OwnFilesFail:
            return False
        for trial in trials:
            self._stand_in.decoy = trial.decoy
            try:
                got, want = self._test.run(inputs, case.parameters)
            except RAISED as error:  # the author's reference, on inputs that a decoy changed
                trial.raised = trial.raised or f"the reference raises {type(error).__name__} on what it would be given"
                continue
            if not self._same(trial.decoy, got, want, inputs, case, exact):
                trial.case, trial.detail = case.name, "equal on every listed case; not on this one, which is not listed"
        return True

    def _judge(
        self, case: Any, trial: _Trial, got: Any, want: Any, inputs: dict[str, torch.Tensor], exact: Any
    ) -> None:
        if _alike(several(got), several(want)):
            return  # no comparison can tell them apart
        try:
            as_promised(got, want)
        except CandidateFailed as failed:
            trial.fate, trial.case, trial.status, trial.detail = Fate.REJECTED, case.name, failed.status, failed.message
            return
        figures = compared(self._test, case, got, want, exact)
        share = max(figures["tolerance_ratio"], figures["precision"] / self._test.PRECISION)
        said = f"{figures['tolerance_ratio']:.2g} times the tolerance, precision {figures['precision']:.2g}"
        if figures["status"] is not Status.PASSED:
            trial.fate, trial.case, trial.status, trial.detail = Fate.REJECTED, case.name, figures["status"], said
        elif share > trial.nearest and not self._same(trial.decoy, got, want, inputs, case, exact):
            trial.nearest, trial.case = share, case.name
            trial.detail = f"differs, and at most by {said} (at most {self._test.PRECISION:g})"

    def _made(self, case: Any) -> tuple[dict[str, torch.Tensor], Any]:
        what = "making the inputs as op.yaml and reference.py say"
        try:
            inputs: dict[str, torch.Tensor] = self._test.make_inputs(case, self._device, _SEED)
            what = f"reference.py: {self._job.reference}, for float64,"
            exact = self._test.exactly(inputs, case.parameters)
        except RAISED as error:  # the author's code
            raise OwnFilesFail(what, error, case.name) from error
        self.varied |= {name for name, value in case.parameters.items() if value != self._job.parameters.get(name)}
        return inputs, exact

    def _same(self, decoy: Decoy, got: Any, want: Any, inputs: dict[str, torch.Tensor], case: Any, exact: Any) -> bool:
        """As any comparison sees it; or in float64, where a sum in another order does not show, to twelve digits."""
        if _alike(several(got), several(want)):
            return True
        if not decoy.exact:
            return False
        wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
        pairs = zip(several(decoy.function(**wide, **case.parameters)), several(exact), strict=True)
        return all(_agree(one, other) for one, other in pairs)


def _within(bounds: Sequence[int], size: int) -> int:
    """The size of a drawn range that is nearest below `size`, or its first."""
    low, high, *step = bounds
    among = range(low, high + 1, *step)
    return max((one for one in among if one <= size), default=low)


def _alike(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """The same tensors, whatever bits a NaN has."""
    pairs = list(zip(some, others, strict=False))
    same = len(some) == len(others) and all(
        one.shape == other.shape and one.dtype == other.dtype for one, other in pairs
    )
    return same and all(bool(((one == other) | (one.isnan() & other.isnan())).all()) for one, other in pairs)


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    size = float(other[other.isfinite()].abs().max()) if other.isfinite().any() else 0.0
    return bool(torch.allclose(one, other, rtol=_DIGITS, atol=_DIGITS * size, equal_nan=True))


def _as_declared(result: DecoyResult, declared: dict[str, str]) -> DecoyResult:
    """A decoy that the op's author calls equivalent may be let through, and may not be rejected."""
    if result.name not in declared or result.fate in (Fate.BROKEN, Fate.EQUIVALENT):
        return result
    if result.fate is Fate.PASSED:
        return replace(result, fate=Fate.DECLARED, detail=declared[result.name])
    detail = f"op.yaml calls it equivalent, but a case rejects it ({result.detail}): take it out of equivalent_decoys"
    return replace(result, fate=Fate.BROKEN, detail=detail)


def _undeclarable(job: OpCheckJob, trials: Sequence[_Trial]) -> list[DecoyResult]:
    names = [trial.decoy.name for trial in trials]
    detail = f"op.yaml calls it equivalent, and there is no such decoy; decoys are {', '.join(names)}"
    return [DecoyResult(name, "", Fate.BROKEN, detail=detail) for name in job.equivalent if name not in names]
