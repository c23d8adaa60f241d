"""One kernel timed with other launch parameters than its file gives: by overriding them, in one process of its own.

What that process says of its times is believed here, because nothing is decided by it: the way that wins is written
into the source by the orchestrator, and then judged and measured as any attempt. Values are not compared here. A way in
which the kernel cannot be launched is out, and it is said why.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestrator.errors import JudgeError
from orchestrator.judge import testfile
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import Arena, DeviceArena
from orchestrator.judge.timing import baselines, cases
from orchestrator.judge.timing.contender import Contender
from orchestrator.judge.timing.moves import tied
from orchestrator.judge.timing.statistics import geomean, latency_us, median
from orchestrator.measured import AS_WRITTEN, Fastest, Launch, LaunchTimings, SweepJob, Swept
from orchestrator.records import Compiled, to_json
from orchestrator.tree import remove_tree

_HALVED_AFTER = 4  # shapes
_ALWAYS_FOLLOWED = 4  # ways
_PASSES = 2  # over all ways at a shape, each in another order
_PLACES, _REPLAYS = 4, 12
_WHY = 300  # characters


@dataclass
class _Way:
    """One way to launch, and what came of it so far."""

    launch: Launch
    latencies_us: list[float] = field(default_factory=list)
    compiled: dict[str, Compiled] = field(default_factory=dict)  # by what they are
    failed: str = ""
    slower: float = 0.0

    @property
    def followed(self) -> bool:
        return not (self.failed or self.slower)

    def timings(self) -> LaunchTimings:
        if not self.followed:
            return LaunchTimings(self.launch, (), self.failed, slower=self.slower)
        return LaunchTimings(self.launch, tuple(self.latencies_us), compiled=tuple(self.compiled.values()))


def sweep(job: SweepJob, server: ForkServer, versions: dict[str, str], tell: Callable[[str], None]) -> Swept:
    """Time every way at every shape, as far as the time goes."""
    begun, kernel = time.monotonic(), job.kernel
    stand_in = ModuleType(Path(kernel.kernel).stem)
    setattr(stand_in, kernel.function, lambda *args, **kwargs: None)
    seed = kernel.seed if kernel.seed is not None else int.from_bytes(os.urandom(4), "big") >> 1
    with testfile.loaded(Path(kernel.folder), stand_in) as test:
        every, _ = cases.of(test, kernel)
        into, out = cases.buffer_bytes(test, every, seed)
        arenas = (DeviceArena(into), DeviceArena(out))
        running = _Sweep(job, server, arenas, [_Way(AS_WRITTEN), *map(_Way, job.launches)])
        try:
            shapes = running.through(test, every, seed, begun + job.total_s, tell)
        finally:
            running.end()
    ways = tuple(way.timings() for way in running.ways)
    fault = ways[0].failed or ("" if shapes else f"no shape was timed within {job.total_s:g} s")
    return Swept(
        kernel.nonce,
        shapes=() if fault else tuple(shapes),
        ways=() if fault else ways,
        fastest=() if fault else tuple(running.fastest),
        expected_shapes=len(every),
        fault=fault,
        versions=versions,
        seconds=round(time.monotonic() - begun, 1),
    )


class _Sweep:
    def __init__(self, job: SweepJob, server: ForkServer, arenas: tuple[Arena, Arena], ways: list[_Way]) -> None:
        self.ways = ways
        self.fastest: list[Fastest] = []  # at each shape
        self._job = job.kernel
        self._server = server
        self._arenas = arenas
        self._scratch = Path(job.kernel.folder) / "scratch"
        self._contender: Contender | None = None

    def through(
        self, test: ModuleType, every: Sequence[Any], seed: int, deadline: float, tell: Callable[[str], None]
    ) -> list[str]:
        """The names of the shapes that every way was timed at; one that was cut short is left out."""
        done: list[str] = []
        for case in random.Random(seed).sample(every, len(every)):  # so that the first few are of all kinds
            inputs = test.make_inputs(case, "cuda", seed)
            times: dict[int, list[float]] = {}
            for _ in range(_PASSES):
                living = [number for number, way in enumerate(self.ways) if way.followed]
                for number in random.sample(living, len(living)):
                    if time.monotonic() > deadline:
                        return done
                    if (us := self._timed(self.ways[number], inputs, case, tied=tied(test))) is not None:
                        times.setdefault(number, []).append(us)
                if self.ways[0].failed:
                    return done
            done.append(cases.name(case))
            taken = {number: median(found) for number, found in times.items()}
            for number, us in taken.items():
                self.ways[number].latencies_us.append(us)
            self.fastest.append(fastest(done[-1], {self.ways[number].launch: us for number, us in taken.items()}))
            tell(_line(done[-1], self.ways))
            if len(done) % _HALVED_AFTER == 0:
                give_up_the_slower(self.ways)
        return done

    def end(self) -> None:
        """The process, its buffers and what it wrote."""
        if self._contender is not None:
            self._contender.end()
        for arena in self._arenas:
            arena.close()
        if self._scratch.is_dir():
            remove_tree(self._scratch)

    def _timed(self, way: _Way, inputs: dict[str, Any], case: Any, *, tied: bool) -> float | None:
        """A block at each of a few places in memory; None where the kernel cannot be launched so."""
        limits = self._job.limits
        try:
            contender = self._running()
            contender.prepare(
                *(inputs, case.parameters),
                graph=True,
                seconds=limits.call_s + limits.compile_s,
                tied=tied,
                launch=way.launch.options,
                places=_PLACES,
            )
            way.compiled |= {to_json(one, indent=None): one for one in contender.compiled}
            return latency_us([contender.time(_REPLAYS)[0] for _ in range(contender.places)])
        except CandidateFailed as failed:
            if failed.ours:
                raise JudgeError(f"the sweep was disturbed: {failed.message}") from failed
            way.failed = failed.message[:_WHY]
            if self._contender is not None:  # its GPU context may be lost
                self._contender.end()
                self._contender = None
            return None

    def _running(self) -> Contender:
        if self._contender is None:
            self._scratch.mkdir(exist_ok=True)
            spec, folder = baselines.candidate(self._job), Path(self._job.folder)
            self._contender = Contender(
                self._server, spec, folder, self._scratch, "cuda", self._arenas, self._job.limits
            )
            self._contender.attach()
            self._contender.load()
        return self._contender


def fastest(shape: str, taken: Mapping[Launch, float]) -> Fastest:
    """Of the ways that were timed there."""
    best = min(taken, key=taken.__getitem__)
    return Fastest(shape, best, taken[best], taken[AS_WRITTEN])


def give_up_the_slower(ways: Sequence[_Way]) -> None:
    """The slower half of the ways that are still followed, by the geometric mean over the shapes so far.

    The file as it is written, the first, stays, and so do the fastest few: only one way is written down in the end.
    """
    written, *others = ways
    ratios = {
        number: geomean([us / own for us, own in zip(way.latencies_us, written.latencies_us, strict=True)])
        for number, way in enumerate(others)
        if way.followed
    }
    ranked = sorted(ratios, key=ratios.__getitem__)
    for number in ranked[max(_ALWAYS_FOLLOWED, len(ranked) // 2) :]:
        if ratios[number] > 1:
            others[number].slower = ratios[number]


def _line(name: str, ways: Sequence[_Way]) -> str:
    """One shape, for whoever watches."""
    timed = [way for way in ways if way.latencies_us and way.followed]
    best = min(timed, key=lambda way: way.latencies_us[-1])
    return (
        f"{name}: {ways[0].latencies_us[-1]:.2f} us as written, {best.latencies_us[-1]:.2f} us with {best.launch} "
        f"({len(timed)} of {len(ways)} ways)"
    )
