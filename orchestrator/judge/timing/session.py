"""One measurement, from a passed kernel to a Measured: who takes part, every shape, what the candidate is caught at.

Owns the life of the contenders' processes and buffers, and what each failure means: a baseline that fails is absent
and said so, a candidate that fails or writes wrong values while it is timed is convicted, and what is neither is an
error of ours. Values are judged by the committed test file, as in a verdict.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch

from orchestrator import gpu
from orchestrator.errors import JudgeError
from orchestrator.judge import testfile
from orchestrator.judge.candidate import ZONE, CandidateFailed, KilledFromOutside
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import DeviceArena, slots, torch_dtype
from orchestrator.judge.timing import baselines, rounds
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.contender import Contender
from orchestrator.judge.timing.roofline import Roofline
from orchestrator.judge.timing.rounds import ContenderFailed, Series
from orchestrator.judge.timing.statistics import median
from orchestrator.measured import CANDIDATE, GpuState, Measured, MeasureJob, ShapeTimings, Timing
from orchestrator.records import Judging, Status
from orchestrator.tree import remove_tree

T = TypeVar("T")
Tell = Callable[[str], None]

MOST_CONTENDERS = 10  # processes that are timed at once
_TWIN = "the same baseline again"
_TRIES = 2  # at a shape whose two clocks disagree


class _Dropped(Exception):
    """A baseline failed and is out; the shape must be timed without it."""


@dataclass(frozen=True)
class _Seat:
    """What a contender runs in, kept when it is started again."""

    spec: Spec
    server: ForkServer
    scratch: Path
    arenas: tuple[DeviceArena, DeviceArena]


@dataclass
class _Taker:
    """One that takes part: its process, and whether its calls can be captured."""

    seat: _Seat
    contender: Contender
    graph: bool = True
    detail: str = ""


class Session:
    """The measurements of one judge. The card's ceilings are measured once."""

    def __init__(self, servers: Sequence[ForkServer], judging: Judging) -> None:
        self._servers = servers
        self._judging = judging
        self._roofline = Roofline()

    def measure(self, job: MeasureJob, tell: Tell) -> Measured:
        """Time the kernel of the job's folder beside its baselines. `tell` hears of the progress."""
        return _Measurement(job, self._servers, self._judging, self._roofline, tell).measured()


@dataclass
class _Measurement:
    job: MeasureJob
    servers: Sequence[ForkServer]
    judging: Judging
    roofline: Roofline
    tell: Tell
    seed: int = 0
    takers: dict[str, _Taker] = field(default_factory=dict)  # the candidate first
    absent: dict[str, str] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)
    delivered: Any = None  # what the stand-in for the kernel returns to the test file
    begun: float = field(default_factory=time.monotonic)

    def measured(self) -> Measured:
        """All of it. Whatever happens, the processes end and the buffers are given back."""
        job = self.job
        self.seed = job.seed if job.seed is not None else int.from_bytes(os.urandom(4), "big") >> 1
        stand_in = ModuleType(Path(job.kernel).stem)
        setattr(stand_in, job.function, lambda *args, **kwargs: self.delivered)
        before, seats = self._state(), []
        self._refuse_company(before)
        found: list[ShapeTimings] = []
        try:
            with testfile.loaded(Path(job.folder), stand_in) as test:
                cases = [
                    test.Case(dict(zip(job.dims, shape, strict=True)), dtype)
                    for shape in job.shapes
                    for dtype in job.dtypes
                ]
                seats = self._seats(test, cases)
                for seat in seats:
                    self._start(seat)
                sandbox = self.takers[CANDIDATE].contender.pieces
                for case in cases:
                    found.append(self._shape(test, case))
            said = f"timed at {len(found)} shapes"
            result = Measured(
                *(Status.PASSED, said, job.nonce), shapes=tuple(found), expected_shapes=len(cases), sandbox=sandbox
            )
        except KilledFromOutside as failed:
            raise JudgeError(f"measuring was disturbed: {failed.message}") from failed
        except CandidateFailed as failed:
            if "OutOfMemory" in failed.message:
                raise JudgeError(f"the GPU's memory does not suffice to measure: {failed.message}") from failed
            result = Measured(failed.status, failed.message, job.nonce, failed.detail, shapes=tuple(found))
        finally:
            after = self._state()
            self._end(seats)
        return self._completed(result, before, after)

    def _completed(self, result: Measured, before: GpuState, after: GpuState) -> Measured:
        return replace(
            result,
            launch_us=self.roofline.launch_us,
            copy_gbps=self.roofline.copies.best_gbps,
            matmul_tflops=dict(self.roofline.matmul_tflops),
            before=before,
            after=after,
            warnings=_warnings(before, after),
            generated=self.generated,
            versions=self.judging.versions,
            seed=self.seed,
            rounds=self.job.rounds,
            seconds=round(time.monotonic() - self.begun, 1),
        )

    # --- who takes part ---

    def _seats(self, test: ModuleType, cases: Sequence[Any]) -> list[_Seat]:
        specs = [baselines.candidate(self.job), *baselines.baselines(self.job)]
        specs.append(replace(baselines.twin(self.job), name=_TWIN))
        if len(specs) > len(self.servers):
            raise JudgeError(f"{len(specs)} contenders are more than the {len(self.servers)} that can be timed at once")
        into, out = self._buffer_bytes(test, cases)
        folder = Path(self.job.folder)
        seats = []
        for number, (spec, server) in enumerate(zip(specs, self.servers, strict=False)):
            scratch = folder / f"scratch-{number}"
            scratch.mkdir()
            seats.append(_Seat(spec, server, scratch, (DeviceArena(into), DeviceArena(out))))
        return seats

    def _buffer_bytes(self, test: ModuleType, cases: Sequence[Any]) -> tuple[int, int]:
        """What the largest shape needs for its inputs and for its results."""
        into = out = 0
        for case in cases:
            inputs = test.make_inputs(case, "cuda", self.seed)
            _, want = test.run(inputs, case.parameters)
            results = want if isinstance(want, tuple) else (want,)
            into = max(into, slots([(tuple(t.shape), t.dtype) for t in inputs.values()], ZONE)[1])
            out = max(out, slots([(tuple(t.shape), t.dtype) for t in results])[1])
        torch.cuda.empty_cache()
        return into, out

    def _start(self, seat: _Seat, *, graph: bool = True, detail: str = "") -> None:
        """Start a process; a baseline that cannot be imported is absent."""
        contender = self._contender(seat)
        self.takers[seat.spec.name] = _Taker(seat, contender, graph, detail)
        try:
            contender.load()
        except CandidateFailed as failed:
            self._lost(seat.spec.name, failed)

    def _contender(self, seat: _Seat) -> Contender:
        folder = Path(self.job.folder)
        return Contender(seat.server, seat.spec, folder, seat.scratch, "cuda", seat.arenas, self.job.limits)

    def _lost(self, name: str, failed: CandidateFailed) -> None:
        """A baseline is out, and why; a candidate is not lost but convicted."""
        if name == CANDIDATE or isinstance(failed, KilledFromOutside):
            raise failed
        self.takers.pop(name).contender.end()
        self.absent[name] = failed.message
        self.tell(f"without {name}: {failed.message}")

    def _end(self, seats: Sequence[_Seat]) -> None:
        for taker in self.takers.values():
            taker.contender.end()
        for seat in seats:
            for arena in seat.arenas:
                arena.close()
            remove_tree(seat.scratch)

    # --- one shape ---

    def _shape(self, test: ModuleType, case: Any) -> ShapeTimings:
        if time.monotonic() - self.begun > self.job.total_s:
            raise JudgeError(f"measuring did not end within {self.job.total_s:g} s; raise measure.total_s")
        while True:
            try:
                timings = self._timed(test, case)
            except _Dropped:
                continue
            self.tell(_line(timings))
            return timings

    def _timed(self, test: ModuleType, case: Any) -> ShapeTimings:
        warm, fresh = (test.make_inputs(case, "cuda", seed) for seed in (self.seed, self.seed + 1))
        for name in list(self.takers):
            self._prepare(name, warm, case)
        for name in list(self.takers):
            self._of(name, partial(self._tried, name, fresh, test, case))
        series = self._series(test, case)
        ours = [one for name, one in series.items() if name != CANDIDATE and self.takers[name].graph]
        return self._record(case, series, ours)

    def _tried(self, name: str, fresh: Mapping[str, torch.Tensor], test: ModuleType, case: Any) -> None:
        """Other values into the same places after capture: a first block must have computed with them."""
        contender = self.takers[name].contender
        contender.renew(fresh)
        contender.time(1)
        self._right(name, test, case)

    def _prepare(self, name: str, inputs: Mapping[str, torch.Tensor], case: Any) -> None:
        """Compiled, run and captured; where that fails with a graph, in a new process without one."""
        limits, taker = self.job.limits, self.takers[name]
        seconds = limits.call_s + limits.compile_s
        try:
            taker.contender.prepare(inputs, case.parameters, graph=taker.graph, seconds=seconds)
        except CandidateFailed as failed:
            if not taker.graph or isinstance(failed, KilledFromOutside):
                self._lost(name, failed)
                return
            taker.contender.end()
            self._start(taker.seat, graph=False, detail=f"no graph could be captured ({failed.message})")
            if name in self.takers:
                self._prepare(name, inputs, case)
        else:
            if taker.contender.generated:
                self.generated[_file_name(name, case)] = taker.contender.generated

    def _of(self, name: str, action: Callable[[], T]) -> T:
        """Do something with one contender; when it is a baseline and fails, the shape begins anew without it."""
        try:
            return action()
        except CandidateFailed as failed:
            self._lost(name, failed)
            raise _Dropped from failed

    def _right(self, name: str, test: ModuleType, case: Any) -> None:
        """Raises CandidateFailed unless the last replay wrote the right values for inputs that it cannot have seen."""
        inputs, self.delivered = self.takers[name].contender.last_replay()
        got, want = test.run(inputs, case.parameters)
        as_promised(got, want)
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for one, other in pairs:
            compared = test.compare(one, other, case.dtype)
            if not compared.passed:
                raise CandidateFailed(
                    Status.WRONG_VALUES,
                    f"{int(compared.wrong.sum())} of {one.numel()} elements wrong in a timed replay on fresh inputs, "
                    f"at {case.name}: what was timed does not compute the result (nothing captured, or an answer kept)",
                )

    def _series(self, test: ModuleType, case: Any) -> dict[str, Series]:
        """The rounds; once more where the candidate's events and the judge's clock disagree."""
        contenders = {name: taker.contender for name, taker in self.takers.items()}
        draw = random.Random(os.urandom(8))
        for _ in range(_TRIES):
            try:
                series = rounds.alternate(contenders, self.job.rounds, draw, lambda: self._right(CANDIDATE, test, case))
            except ContenderFailed as failed:
                self._lost(failed.name, failed.failure)
                raise _Dropped from failed
            ours = [one for name, one in series.items() if name != CANDIDATE and self.takers[name].graph]
            missing = rounds.unreported_us(series[CANDIDATE], ours) if self.takers[CANDIDATE].graph and ours else 0.0
            if not missing:
                return series
        clocks = series[CANDIDATE].clocks
        raise CandidateFailed(
            Status.TAMPERED,
            f"at {case.name} its process reports {clocks.reported_us:.2f} us a replay, and by the judge's clock "
            f"{missing:.2f} us more are spent on each: what is timed is not all that runs",
        )

    def _record(self, case: Any, series: Mapping[str, Series], ours: Sequence[Series]) -> ShapeTimings:
        dims, itemsize = dict(case.dims), torch_dtype(case.dtype).itemsize
        nbytes, flops = (_evaluated(text, dims, itemsize) for text in (self.job.bytes, self.job.flops))
        twin = series.get(_TWIN)
        return ShapeTimings(
            dims=dims,
            dtype=case.dtype,
            bytes=nbytes,
            flops=flops,
            ideal_us=self.roofline.ideal_us(nbytes, flops, case.dtype),
            candidate=self._timing(CANDIDATE, series[CANDIDATE], ours),
            baselines=tuple(
                self._timing(name, one, ours) for name, one in series.items() if name not in (CANDIDATE, _TWIN)
            ),
            twin=tuple(twin.latencies_us) if twin else (),
            twin_of=baselines.twin(self.job).name if twin else "",
            absent=dict(self.absent),
        )

    def _timing(self, name: str, series: Series, ours: Sequence[Series]) -> Timing:
        taker = self.takers[name]
        latencies = series.latencies_us if taker.graph or not ours else rounds.by_the_judges_clock(series, ours)
        call = self._of(name, lambda: rounds.call_us(taker.contender, median(latencies)))
        return Timing(name, tuple(latencies), series.clocks.slope_us, call, taker.graph, taker.detail)

    # --- the machine ---

    def _state(self) -> GpuState:
        properties = torch.cuda.get_device_properties()
        ours = [os.getpid(), *(taker.contender.pid for taker in self.takers.values() if taker.contender.alive)]
        return gpu.state(properties.name, str(getattr(properties, "uuid", "")), ours)

    def _refuse_company(self, before: GpuState) -> None:
        if self.job.require_idle and before.others:
            raise JudgeError(f"--require-idle: others use the GPU: {', '.join(before.others)}")


def _warnings(before: GpuState, after: GpuState) -> tuple[str, ...]:
    others = dict.fromkeys((*before.others, *after.others))
    return tuple(f"others used the GPU meanwhile: {other}" for other in others)


def _evaluated(expression: str, dims: Mapping[str, int], itemsize: int) -> int:
    """An expression of op.yaml in the dims; `ops` has seen that it names nothing else."""
    return int(eval(expression, {"__builtins__": {}}, {**dims, "itemsize": itemsize}))


def _file_name(baseline: str, case: Any) -> str:
    sizes = "x".join(str(size) for size in case.dims.values())
    return f"{baseline.replace(', ', '-')}-{sizes}-{case.dtype}.py"


def _line(timings: ShapeTimings) -> str:
    """One shape, for whoever watches."""
    mine = median(timings.candidate.latencies_us)
    others = ", ".join(
        f"{one.name} {median(one.latencies_us):.2f}{'' if one.graph else ' (events)'}" for one in timings.baselines
    )
    how = "" if timings.candidate.graph else " (events)"
    return f"{timings.name}: {mine:.2f} us{how}, {timings.ideal_us / mine:.0%} of the ceiling; {others}"
