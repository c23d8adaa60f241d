"""One measurement, from a passed kernel to a Measured: every shape, what is checked, what the candidate is caught at.

A candidate that fails, writes wrong values while it is timed, or whose clock the judge's contradicts, is convicted.
Values are judged by the committed test file, as in a verdict.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar

import torch

from orchestrator import arithmetic, gpu
from orchestrator.errors import JudgeError
from orchestrator.judge import testfile
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import DeviceArena, torch_dtype
from orchestrator.judge.timing import cases, launch_sweep, rounds, sittings
from orchestrator.judge.timing.baselines import with_picks
from orchestrator.judge.timing.kept_compiled import KeptCompiled
from orchestrator.judge.timing.moves import tied
from orchestrator.judge.timing.roofline import Roofline
from orchestrator.judge.timing.rounds import ContenderFailed, Series
from orchestrator.judge.timing.seats import MOST_CONTENDERS, TWIN, Seats
from orchestrator.judge.timing.statistics import latency_us
from orchestrator.measured import (
    AUTOTUNED,
    BEST,
    CANDIDATE,
    CHAMPION,
    REFERENCE,
    GpuState,
    Measured,
    MeasureJob,
    ShapeTimings,
    SweepJob,
    Swept,
    Timing,
)
from orchestrator.records import Compiled, Judging, SandboxPiece, Status, to_json

T = TypeVar("T")
Tell = Callable[[str], None]

_NOT_ON_CURVES = (TWIN, REFERENCE, AUTOTUNED)
_TRIES = 2  # at a shape whose two clocks disagree


_INPUTS_BYTES, _INPUTS_SHARE = 512 << 20, 128  # of each contender's inputs at all places, and of the device's memory
_LEAST_FREE = 8  # times its buffers, for what a process takes beside them: the clock, results at all places, scratch
_NO_MEMORY = (
    "the GPU's memory does not suffice to measure; make the op's bench shapes smaller, or leave a baseline out by "
    "measure.without"
)


class _Dropped(Exception):
    """A baseline failed and is out; the shape must be timed without it."""


class Session:
    """The measurements of one judge. The card's ceilings are measured once."""

    def __init__(self, servers: Sequence[ForkServer], judging: Judging, cache: Path) -> None:
        self._servers = servers
        self._judging = judging
        self._about = {**judging.versions, "device": judging.device}
        self._kept = KeptCompiled(cache, self._about)
        self._roofline = Roofline()

    def measure(self, job: MeasureJob, tell: Tell) -> Measured:
        """Time the kernel of the job's folder beside its baselines. `tell` hears of the progress."""
        with TemporaryDirectory(prefix="compiled-") as folder:  # for the later sittings alone
            kept = self._kept if job.keep_compiled else KeptCompiled(Path(folder), self._about)
            return _Measurement(job, self._servers, self._judging, self._roofline, tell, kept).measured()

    def sweep(self, job: SweepJob, tell: Tell) -> Swept:
        """Time the kernel of the job's folder with other launch parameters than its own."""
        return launch_sweep.sweep(job, self._servers[0], self._judging.versions, tell)


@dataclass
class _Measurement:
    job: MeasureJob
    servers: Sequence[ForkServer]
    judging: Judging
    roofline: Roofline
    tell: Tell
    kept: KeptCompiled
    seed: int = 0
    found: dict[str, ShapeTimings] = field(default_factory=dict)  # by the shape's name
    sandbox: tuple[SandboxPiece, ...] = ()
    after: GpuState = field(init=False)  # while everyone was still there
    generated: dict[str, str] = field(default_factory=dict)
    compiled: dict[str, Compiled] = field(default_factory=dict)  # of the candidate, by what they are
    delivered: Any = None  # what the stand-in for the kernel returns to the test file
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.seats = self._new_seats()

    def measured(self) -> Measured:
        """All of it. Whatever happens, the processes end and the buffers are given back."""
        job = self.job
        self.seed = job.seed if job.seed is not None else int.from_bytes(os.urandom(4), "big") >> 1
        stand_in = ModuleType(Path(job.kernel).stem)
        setattr(stand_in, job.function, lambda *args, **kwargs: self.delivered)
        before = self.after = self._state()
        self._refuse_company(before)
        try:
            with testfile.loaded(Path(job.folder), stand_in) as test:
                expected = self._every_sitting(test)
            said = f"timed at {len(self.found)} shapes"
            result = Measured(
                Status.PASSED, said, job.nonce, shapes=tuple(self.found.values()), expected_shapes=expected
            )
        except torch.OutOfMemoryError as failed:
            raise JudgeError(f"{_NO_MEMORY}: {failed}") from failed
        except CandidateFailed as failed:
            if failed.ours:
                raise JudgeError(f"measuring was disturbed: {failed.message}") from failed
            shapes = tuple(self.found.values())
            result = Measured(failed.status, failed.message, job.nonce, failed.detail, shapes=shapes)
        return self._completed(result, before, self.after)

    def _every_sitting(self, test: ModuleType) -> int:
        """The first at all shapes, later ones at those that count; returns how many shapes there are."""
        deciding, curve = cases.of(test, self.job)
        self._sitting(test, deciding, curve)
        again = [case for case in deciding if sittings.again(self.found[cases.name(case)], self.roofline.launch_us)]
        for number in range(2, self.job.sittings + 1 if again else 0):
            self.tell(f"sitting {number} of {self.job.sittings}, at {len(again)} of {len(deciding)} shapes")
            self._sitting(test, again, [])
        return len(deciding) + len(curve)

    def _sitting(self, test: ModuleType, deciding: Sequence[Any], curve: Sequence[Any]) -> None:
        """Everyone by a new process, at these shapes."""
        self.seats = self._new_seats()
        try:
            self._take_seats(test, [*deciding, *curve])
            self.sandbox = self.seats.takers[CANDIDATE].contender.pieces
            for case in deciding:
                timings, earlier = self._shape(test, case), self.found.get(cases.name(case))
                self.found[cases.name(case)] = timings if earlier is None else sittings.joined(earlier, timings)
            for case in curve:
                self.found[f"{cases.name(case)}, of the curve"] = self._shape(test, case, curve=True)
        except CandidateFailed as failed:
            self._refuse_scarcity(failed)
            raise
        finally:
            self.after = self._state()
            self.seats.end()

    def _new_seats(self) -> Seats:
        return Seats(self.job, self.servers, "cuda", self.tell, self.kept)

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
            compiled=tuple(self.compiled.values()),
            sandbox=self.sandbox,
            versions=self.judging.versions,
            seed=self.seed,
            rounds=self.job.rounds,
            seconds=round(time.monotonic() - self.begun, 1),
        )

    def _take_seats(self, test: ModuleType, every: Sequence[Any]) -> None:
        into, out = cases.buffer_bytes(test, every, self.seed)
        into = max(into, min(_INPUTS_BYTES, torch.cuda.get_device_properties().total_memory // _INPUTS_SHARE))
        self.seats.take(lambda: (DeviceArena(into), DeviceArena(out)))
        names = ", ".join(self.seats.takers)
        self.tell(f"{len(self.seats.takers)} processes, {into + out >> 20} MiB shared with each: {names}")

    def _shape(self, test: ModuleType, case: Any, *, curve: bool = False) -> ShapeTimings:
        if time.monotonic() - self.begun > self.job.total_s:
            raise JudgeError(f"measuring did not end within {self.job.total_s:g} s; raise measure.total_s")
        for _ in range(MOST_CONTENDERS):
            try:
                timings = replace(self._timed(test, case, curve=curve), curve=curve)
            except _Dropped:
                continue
            self.tell(_line(timings))
            return timings
        raise JudgeError(f"the baselines keep failing at {case.name}: {'; '.join(self.seats.absent.values())}")

    def _timed(self, test: ModuleType, case: Any, *, curve: bool) -> ShapeTimings:
        """All at one shape; of a curve's, without the twin and the slowest of the baselines."""
        self.seats.keep_a_twin()
        warm, fresh = (test.make_inputs(case, "cuda", seed) for seed in (self.seed, self.seed + 1))
        few = [name for name in self.seats.takers if name not in _NOT_ON_CURVES]
        wanted = few if curve and set(few) - {CANDIDATE, BEST} else list(self.seats.takers)
        count = self.job.rounds // (2 if curve else 1)  # each round at another place
        for name in wanted:
            self._prepare(name, warm, case, tied=tied(test), places=count)
        wanted = [name for name in wanted if name in self.seats.takers]
        for name in wanted:
            self._of(name, partial(self._tried, name, fresh, test, case))
        series = self._series(test, case, wanted, count)
        torch.cuda.empty_cache()
        return self._record(case, series, self._ours(series))

    def _tried(self, name: str, fresh: Mapping[str, torch.Tensor], test: ModuleType, case: Any) -> None:
        """Other values into the same places after capture: a first block must have computed with them."""
        contender = self.seats.takers[name].contender
        contender.renew(fresh)
        contender.time(1)
        self._right(name, test, case)

    def _prepare(self, name: str, inputs: Mapping[str, torch.Tensor], case: Any, *, tied: bool, places: int) -> None:
        """Compiled, run and captured; where that fails with a graph, in a new process without one."""
        limits, taker = self.job.limits, self.seats.takers[name]
        seconds = limits.call_s + limits.compile_s
        try:
            taker.contender.prepare(
                *(inputs, case.parameters), graph=taker.graph, seconds=seconds, tied=tied, places=places
            )
        except CandidateFailed as failed:
            if not failed.ours and self.seats.afresh(name):
                self._prepare(name, inputs, case, tied=tied, places=places)
                return
            if not taker.graph or failed.ours:
                self.seats.lost(name, failed)
                return
            self.seats.again(name, graph=False, detail=f"no graph could be captured ({failed.message})")
            if name in self.seats.takers:
                self._prepare(name, inputs, case, tied=tied, places=places)
        else:
            if taker.contender.generated:
                file = _file_name(name, case)
                self.generated[file] = with_picks(self.generated.get(file, ""), taker.contender.generated)
            if name == CANDIDATE:
                self.compiled |= {to_json(one, indent=None): one for one in taker.contender.compiled}

    def _of(self, name: str, action: Callable[[], T]) -> T:
        """Do something with one contender; when it is a baseline and fails, the shape begins anew without it."""
        try:
            return action()
        except CandidateFailed as failed:
            self.seats.lost(name, failed)
            raise _Dropped from failed

    def _right(self, name: str, test: ModuleType, case: Any) -> None:
        """Raises CandidateFailed unless the last replay wrote the right values for inputs that it cannot have seen."""
        inputs, self.delivered = self.seats.takers[name].contender.last_replay()
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

    def _series(self, test: ModuleType, case: Any, names: Sequence[str], count: int) -> dict[str, Series]:
        """The rounds; once more where the candidate's events and the judge's clock disagree."""
        contenders = {name: self.seats.takers[name].contender for name in names}
        draw, alone = random.Random(os.urandom(8)), not self.seats.takers[CANDIDATE].graph
        for _ in range(_TRIES):
            try:
                series = rounds.alternate(
                    contenders, count, draw, lambda: self._right(CANDIDATE, test, case), alone=alone
                )
            except ContenderFailed as failed:
                self.seats.lost(failed.name, failed.failure)
                raise _Dropped from failed
            ours = self._ours(series)
            if not ours or alone:
                return series
            if not (missing := rounds.unreported_us(series[CANDIDATE], ours)):
                return series
        clocks = series[CANDIDATE].clocks
        raise CandidateFailed(
            Status.TAMPERED,
            f"at {case.name} its process reports {clocks.reported_us:.2f} us a replay, and by the judge's clock "
            f"{missing:.2f} us more are spent on each: what is timed is not all that runs",
        )

    def _ours(self, series: Mapping[str, Series]) -> list[Series]:
        """Of those that run code of ours alone, in a graph: their two clocks say how far apart clocks are."""
        takers = self.seats.takers
        theirs = (CANDIDATE, CHAMPION, BEST)
        return [one for name, one in series.items() if name not in theirs and takers[name].graph]

    def _record(self, case: Any, series: Mapping[str, Series], ours: Sequence[Series]) -> ShapeTimings:
        dims = dict(case.dims)
        known = {**dims, "itemsize": torch_dtype(case.dtype).itemsize}
        nbytes, flops = (arithmetic.value(text, known) for text in (self.job.bytes, self.job.flops))
        twin = series.get(TWIN)
        return ShapeTimings(
            dims=dims,
            dtype=case.dtype,
            bytes=nbytes,
            flops=flops,
            ideal_us=self.roofline.ideal_us(nbytes, flops, case.dtype),
            candidate=self._timing(CANDIDATE, series[CANDIDATE], ours),
            baselines=tuple(
                self._timing(name, one, ours) for name, one in series.items() if name not in (CANDIDATE, TWIN)
            ),
            twin=tuple(twin.latencies_us) if twin else (),
            twin_of=self.seats.twin_of if twin else "",
            absent=dict(self.seats.absent),
            moving_us=None if self.job.flops_at_least else self.roofline.copies.us(nbytes),
        )

    def _timing(self, name: str, series: Series, ours: Sequence[Series]) -> Timing:
        taker = self.seats.takers[name]
        latencies = series.latencies_us if taker.graph or not ours else rounds.by_the_judges_clock(series, ours)
        call = self._of(name, lambda: rounds.call_us(taker.contender, latency_us(latencies)))
        return Timing(name, tuple(latencies), series.clocks.slope_us, call, taker.graph, taker.detail)

    def _state(self) -> GpuState:
        properties = torch.cuda.get_device_properties()
        return gpu.state(properties.name, str(getattr(properties, "uuid", "")), self.seats.pids())

    def _refuse_scarcity(self, failed: CandidateFailed) -> None:
        """Raises JudgeError where a candidate may have failed of what others left it of the card's memory, by what is
        free without it."""
        if failed.status is not Status.RUNTIME_ERROR:
            return
        taker = self.seats.takers[CANDIDATE]
        taker.contender.end()
        torch.cuda.empty_cache()
        if torch.cuda.mem_get_info()[0] < _LEAST_FREE * sum(arena.nbytes for arena in taker.seat.arenas):
            raise JudgeError(f"{_NO_MEMORY}: {failed.message}") from failed

    def _refuse_company(self, before: GpuState) -> None:
        if self.job.require_idle and before.others:
            raise JudgeError(f"--require-idle: others use the GPU: {', '.join(before.others)}")


def _warnings(before: GpuState, after: GpuState) -> tuple[str, ...]:
    others = dict.fromkeys((*before.others, *after.others))
    return tuple(f"others used the GPU meanwhile: {other}" for other in others)


def _file_name(baseline: str, case: Any) -> str:
    sizes = "x".join(str(size) for size in case.dims.values())
    return f"{baseline.replace(', ', '-')}-{sizes}-{case.dtype}.py"


def _line(timings: ShapeTimings) -> str:
    """One shape, for whoever watches."""
    mine = latency_us(timings.candidate.latencies_us)
    others = ", ".join(
        f"{one.name} {latency_us(one.latencies_us):.2f}{'' if one.graph else ' (events)'}" for one in timings.baselines
    )
    how = "" if timings.candidate.graph else " (events)"
    return f"{timings.name}: {mine:.2f} us{how}, {timings.ideal_us / mine:.0%} of the ceiling; {others}"
