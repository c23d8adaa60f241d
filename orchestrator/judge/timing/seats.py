"""Who takes part in a measurement: a process each, with a scratch folder and buffers of its own.

Owns their lives: started, started again without a graph, out of it, ended. A baseline that fails is absent and it is
said why; a candidate that fails is convicted, which is for whoever asked to say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.errors import JudgeError
from orchestrator.judge.candidate import CandidateFailed, KilledFromOutside
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import Arena
from orchestrator.judge.timing import baselines
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.contender import Contender
from orchestrator.judge.timing.kept_compiled import KeptCompiled
from orchestrator.measured import BEST, CANDIDATE, MeasureJob
from orchestrator.tree import remove_tree

MOST_CONTENDERS = 11  # processes that are timed at once
TWIN = "the same baseline again"


@dataclass(frozen=True)
class Seat:
    """What a contender runs in, kept when it is started again."""

    spec: Spec
    server: ForkServer
    scratch: Path
    arenas: tuple[Arena, Arena]


@dataclass
class Taker:
    """One that takes part: its process, and whether its calls can be captured."""

    seat: Seat
    contender: Contender
    graph: bool = True
    detail: str = ""  # why not


@dataclass
class Seats:
    """All that take part. The candidate is the first of `takers`."""

    job: MeasureJob
    servers: Sequence[ForkServer]
    device: str
    tell: Callable[[str], None]
    kept: KeptCompiled | None = None  # where what becomes of compiled baselines is kept, if it is
    takers: dict[str, Taker] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)  # baselines, and why
    twin_of: str = ""
    _taken: list[Seat] = field(default_factory=list)
    _given: set[str] = field(default_factory=set)  # who found what an earlier measurement compiled

    def take(self, make_arenas: Callable[[], tuple[Arena, Arena]]) -> None:
        """Start everyone. Raises CandidateFailed when the candidate cannot be imported."""
        self.absent.update(dict.fromkeys(self.job.without, "left out"))
        specs = [baselines.candidate(self.job), *baselines.baselines(self.job)]
        if len(specs) >= len(self.servers):
            raise JudgeError(f"{len(specs)} and a twin are more than the {len(self.servers)} that can be timed at once")
        self.twin_of = baselines.twin(self.job).name
        specs.append(replace(baselines.twin(self.job), name=TWIN))
        for spec, server in zip(specs, self.servers, strict=False):
            self._sit(spec, server, make_arenas)
        self._begin([spec.name for spec in specs])

    def again(self, name: str, *, graph: bool = True, detail: str = "") -> None:
        """End that one's process and start another in its seat."""
        taker = self.takers[name]
        taker.contender.end()
        self._call(taker.seat, graph=graph, detail=detail)
        self._begin([name])

    def afresh(self, name: str) -> bool:
        """Start a baseline that failed again without what it was given of an earlier measurement, if it was."""
        if self.kept is None or name not in self._given:
            return False
        self._given.remove(name)
        seat = self.takers[name].seat
        self.takers[name].contender.end()
        self.kept.forget(seat.spec, self._file(seat.spec), seat.scratch)
        self._call(seat)
        self._begin([name])
        return name in self.takers

    def lost(self, name: str, failed: CandidateFailed) -> None:
        """A baseline is out, and why; of a candidate, and where somebody else killed it, the failure is raised."""
        if name == CANDIDATE or isinstance(failed, KilledFromOutside):
            raise failed
        self.takers.pop(name).contender.end()
        if name != TWIN:
            self.absent[name] = failed.message
            self.tell(f"without {name}: {failed.message}")
        if not set(self.takers) - {CANDIDATE, TWIN, BEST}:
            raise JudgeError(f"no baseline can be timed here; the last, {name}: {failed.message}")

    def keep_a_twin(self) -> None:
        """Where the twin or the baseline that it is the twin of is out, another becomes the twin."""
        others = [name for name in self.takers if name not in (CANDIDATE, TWIN, BEST)]
        if TWIN in self.takers and self.twin_of in others:
            return
        if TWIN in self.takers:
            self.takers.pop(TWIN).contender.end()
        self.twin_of = min(reversed(others), key=lambda name: self.takers[name].seat.spec.kind == "compiled")
        seat = next(seat for seat in self._taken if seat.spec.name == TWIN)
        self._call(replace(seat, spec=replace(self.takers[self.twin_of].seat.spec, name=TWIN)))
        self._begin([TWIN])

    def pids(self) -> list[int]:
        """Our processes that live: the judge's and theirs."""
        return [os.getpid(), *(taker.contender.pid for taker in self.takers.values() if taker.contender.alive)]

    def end(self) -> None:
        """End them all and give back what they had."""
        for taker in self.takers.values():
            taker.contender.end()
        for taker in self.takers.values():
            if self.kept is not None and taker.seat.spec.kind == "compiled":
                self.kept.take(taker.seat.spec, self._file(taker.seat.spec), taker.seat.scratch)
        for seat in self._taken:
            for arena in seat.arenas:
                arena.close()
            remove_tree(seat.scratch)

    def _sit(self, spec: Spec, server: ForkServer, make_arenas: Callable[[], tuple[Arena, Arena]]) -> None:
        scratch = Path(self.job.folder) / f"scratch-{len(self._taken)}"
        scratch.mkdir()
        if self.kept is not None and spec.kind == "compiled" and self.kept.give(spec, self._file(spec), scratch):
            self._given.add(spec.name)
        self._taken.append(Seat(spec, server, scratch, make_arenas()))
        self._call(self._taken[-1])

    def _file(self, spec: Spec) -> Path:
        return Path(self.job.folder) / spec.file

    def _call(self, seat: Seat, *, graph: bool = True, detail: str = "") -> None:
        """A process for that seat."""
        limits, folder = self.job.limits, Path(self.job.folder)
        contender = Contender(seat.server, seat.spec, folder, seat.scratch, self.device, seat.arenas, limits)
        self.takers[seat.spec.name] = Taker(seat, contender, graph, detail)

    def _begin(self, names: Sequence[str]) -> None:
        """Have their processes start the GPU and import, all at once; a baseline that cannot is absent."""
        with ThreadPoolExecutor(len(names)) as threads:
            outcomes = list(threads.map(lambda name: _begun(self.takers[name].contender), names))
        for name, failed in zip(names, outcomes, strict=True):
            if failed is not None:
                self.lost(name, failed)


def _begun(contender: Contender) -> CandidateFailed | None:
    try:
        contender.attach()
        contender.load()
    except CandidateFailed as failed:
        return failed
    return None
