"""Several judges as one: each job goes to whichever is free, and a measurement has its GPU for itself.

Owns who waits for whom, and that a job whose judge is lost with its machine goes to another. A judge takes one job at a
time. Judges that share a GPU judge side by side; a measurement waits until the others on its GPU are done, and no job
begins there while it waits or measures.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from orchestrator import gpu
from orchestrator.errors import JudgeLost, UsageError
from orchestrator.executors import Executor
from orchestrator.executors.local import LocalExecutor, opened
from orchestrator.measured import Measured, MeasureJob, SweepJob, Swept
from orchestrator.records import Job, Judging, OpCheck, OpCheckJob, Report

if TYPE_CHECKING:
    from orchestrator.config import JudgeSettings

T = TypeVar("T")
_LOSSES = 3  # of one job; more is no chance


@dataclass(frozen=True, eq=False)
class Slot:
    """A judge, and the GPU that it judges on ('' where there is none)."""

    executor: Executor
    gpu: str = ""


def of(settings: JudgeSettings, count: int | None, logs: Path) -> Pool:
    """The judges that the settings ask for: of this machine, or of a Ray cluster."""
    if settings.executor == "local":
        return local(count, settings.device, logs)
    from orchestrator.executors.ray import Cluster, RayExecutor

    cluster = Cluster(settings)
    slots = [Slot(RayExecutor(cluster), str(number)) for number in range(count or cluster.places())]
    return Pool(slots, cluster.close)


@asynccontextmanager
async def one(settings: JudgeSettings, log: Path) -> AsyncIterator[Executor]:
    """A single judge, which is ended whatever happens; what it prints goes to `log`, where it is of this machine."""
    if settings.executor == "local":
        _require_gpu(settings.device)
        async with opened(settings.device, log) as executor:
            yield executor
        return
    judges = of(settings, 1, log.parent)
    try:
        yield judges
    finally:
        await judges.close()


def local(count: int | None, device: str, logs: Path) -> Pool:
    """So many judges on this machine, spread over its GPUs; by default one a GPU, or one where there is none."""
    _require_gpu(device)
    gpus = ("",) if device == "cpu" else gpu.visible() or ("",)
    spread = [gpus[number % len(gpus)] for number in range(count or len(gpus))]
    return Pool(
        [
            Slot(LocalExecutor(device, logs / f"judge-{number}.log", on, len(spread)), on)
            for number, on in enumerate(spread, 1)
        ]
    )


def _require_gpu(device: str) -> None:
    """Raises UsageError, before anything is started, where a GPU is asked for and there is none."""
    if device == "gpu" and not gpu.present():
        raise UsageError("--device gpu: no GPU is visible here; give --device cpu, or run on a machine with one")


class Pool:
    """An executor over several."""

    def __init__(self, slots: Sequence[Slot], leave: Callable[[], None] = lambda: None) -> None:
        """`leave` is called when all judges have ended."""
        self.waiting = 0  # jobs that no judge has taken yet
        self._slots = list(slots)
        self._leave_cluster = leave
        self._busy: set[Slot] = set()
        self._taken: set[str] = set()  # GPUs that a measurement has, or waits for
        self._changed = asyncio.Condition()

    def __len__(self) -> int:
        """How many judges there are."""
        return len(self._slots)

    async def start(self) -> Judging:
        """Where verdicts will be made. All judges are of one kind: the first speaks for all."""
        return await self._on(self._any, lambda executor: executor.start())

    async def judge(self, job: Job) -> Report:
        """By whichever judge is free."""
        return await self._on(self._any, lambda executor: executor.judge(job))

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        """By whichever judge is free."""
        return await self._on(self._any, lambda executor: executor.check_op(job))

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        """By the judge of a GPU on which nothing else runs meanwhile."""
        return await self._on(self._alone, lambda executor: executor.measure(job, tell))

    async def sweep(self, job: SweepJob, tell: Callable[[str], None]) -> Swept:
        """As a measurement: alone on its GPU."""
        return await self._on(self._alone, lambda executor: executor.sweep(job, tell))

    async def close(self) -> None:
        """End all judges."""
        for slot in self._slots:
            await slot.executor.close()
        self._leave_cluster()

    async def _on(
        self, place: Callable[[], AbstractAsyncContextManager[Slot]], ask: Callable[[Executor], Awaitable[T]]
    ) -> T:
        """Ask a judge; if its machine is lost, the next one. A judge that was lost is asked nothing more."""
        for lost in range(_LOSSES + 1):
            async with place() as slot:
                try:
                    return await ask(slot.executor)
                except JudgeLost:
                    self._slots.remove(slot)
                    if lost == _LOSSES or not self._slots:
                        raise
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _any(self) -> AsyncIterator[Slot]:
        async with self._changed:
            await self._until(lambda: self._free() is not None or not self._slots)
            if not self._slots:
                raise JudgeLost("every judge was lost with its machine")
            slot = self._free()
            assert slot is not None
            self._busy.add(slot)
        try:
            yield slot
        finally:
            await self._leave(slot)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Slot]:
        slot = None
        async with self._changed:
            while slot is None:
                await self._until(lambda: self._quietest() is not None or not self._slots)
                if not self._slots:
                    raise JudgeLost("every judge was lost with its machine")
                gpu = self._quietest()
                assert gpu is not None
                slot = await self._emptied(gpu)
        try:
            yield slot
        finally:
            self._taken.discard(slot.gpu)
            await self._leave(slot)

    async def _emptied(self, gpu: str) -> Slot | None:
        """A judge of that GPU once no other has a job there; None if all of them were lost meanwhile."""
        slot = None
        self._taken.add(gpu)
        try:
            await self._until(lambda: not [busy for busy in self._busy if busy.gpu == gpu])
            slot = next((slot for slot in self._slots if slot.gpu == gpu), None)
        finally:
            if slot is None:
                self._taken.discard(gpu)
                self._changed.notify_all()
            else:
                self._busy.add(slot)
        return slot

    async def _until(self, holds: Callable[[], bool]) -> None:
        self.waiting += 1
        try:
            await self._changed.wait_for(holds)
        finally:
            self.waiting -= 1

    async def _leave(self, slot: Slot) -> None:
        self._busy.discard(slot)
        async with self._changed:
            self._changed.notify_all()

    def _free(self) -> Slot | None:
        """A judge without a job, on the GPU with the fewest jobs."""
        busy = Counter(slot.gpu for slot in self._busy)
        free = [slot for slot in self._slots if slot not in self._busy and slot.gpu not in self._taken]
        return min(free, key=lambda slot: busy[slot.gpu], default=None)

    def _quietest(self) -> str | None:
        busy = Counter(slot.gpu for slot in self._busy)
        gpus = {slot.gpu for slot in self._slots} - self._taken
        return min(sorted(gpus), key=lambda gpu: busy[gpu], default=None)
