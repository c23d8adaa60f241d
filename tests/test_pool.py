"""Who waits for whom at the judges: jobs side by side, a measurement alone on its GPU."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from orchestrator.errors import JudgeLost
from orchestrator.executors.pool import Pool, Slot
from orchestrator.measured import Measured, MeasureJob
from orchestrator.records import Job, Judging, OpCheck, OpCheckJob, Report, Status
from tests.measurements import measured, shape


class Slow:
    """A judge that takes a while, and notes on its GPU's list what is under way there when a job begins."""

    def __init__(self, under_way: list[str], seen: list[tuple[str, tuple[str, ...]]]) -> None:
        self._under_way = under_way
        self._seen = seen

    async def start(self) -> Judging:
        return Judging("", True, {}, ())

    async def judge(self, job: Job) -> Report:
        await self._do("judge")
        return Report(Status.NO_CODE, "")

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        raise NotImplementedError

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        await self._do("measure")
        return measured(shape(40))

    async def close(self) -> None: ...

    async def _do(self, what: str) -> None:
        self._under_way.append(what)
        self._seen.append((what, tuple(self._under_way)))
        await asyncio.sleep(0.02)
        self._under_way.remove(what)


JOB = Job("id", "n", "/", "op", "k.py", "f", (), {})
MEASURE = MeasureJob("id", "n", "/", "k.py", "f", "r", {}, (), (), (), "1", "1")


async def carried_out(gpus: str, judges: int, jobs: str) -> list[tuple[str, tuple[str, ...]]]:
    """What was under way on a job's GPU as it began; jobs are 'j' and 'm', in the order in which they come."""
    seen: list[tuple[str, tuple[str, ...]]] = []
    under_way: dict[str, list[str]] = {gpu: [] for gpu in gpus}
    pool = Pool([Slot(Slow(under_way[gpu], seen), gpu) for gpu in gpus for _ in range(judges)])
    work = [pool.judge(JOB) if job == "j" else pool.measure(MEASURE, lambda text: None) for job in jobs]
    await asyncio.wait_for(asyncio.gather(*work), 20)
    assert pool.waiting == 0
    return seen


async def test_as_many_jobs_at_once_as_there_are_judges() -> None:
    seen = await carried_out("a", 2, "jjjjjj")
    assert max(len(under_way) for _, under_way in seen) == 2 and len(seen) == 6


async def test_a_measurement_has_its_gpu_for_itself() -> None:
    seen = await carried_out("a", 3, "jjmjjmjj")
    assert [under_way for what, under_way in seen if what == "measure"] == [("measure",)] * 2
    assert not [under_way for what, under_way in seen if what == "judge" and "measure" in under_way]
    assert [what for what, _ in seen].index("measure") == 2, "jobs that come later do not keep it waiting"


async def test_measurements_on_two_gpus_go_side_by_side_while_others_judge() -> None:
    begun = asyncio.get_running_loop().time()
    seen = await carried_out("ab", 1, "mmmm")
    assert len(seen) == 4 and asyncio.get_running_loop().time() - begun < 4 * 0.02 * 0.95


async def test_a_job_that_fails_frees_its_judge() -> None:
    class Failing(Slow):
        async def judge(self, job: Job) -> Report:
            raise RuntimeError("once")

    pool = Pool([Slot(Failing([], []), "a")])
    for _ in range(2):
        (failed,) = await asyncio.wait_for(asyncio.gather(pool.judge(JOB), return_exceptions=True), 5)
        assert isinstance(failed, RuntimeError)
    await asyncio.wait_for(pool.measure(MEASURE, lambda text: None), 5)


async def test_one_that_gives_up_waiting_to_measure_leaves_the_gpu_to_others() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []
    under_way: list[str] = []
    pool = Pool([Slot(Slow(under_way, seen), "a") for _ in range(2)])
    judging = asyncio.create_task(pool.judge(JOB))
    await asyncio.sleep(0)
    measuring = asyncio.create_task(pool.measure(MEASURE, lambda text: None))
    await asyncio.sleep(0.005)
    measuring.cancel()
    await asyncio.wait_for(asyncio.gather(judging, pool.judge(JOB)), 5)
    assert [what for what, _ in seen] == ["judge", "judge"]


class Lost(Slow):
    """A judge whose machine goes away under its first job; it is asked nothing more."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self._gone = False

    async def _do(self, what: str) -> None:
        assert not self._gone, "a dead judge was asked"
        await asyncio.sleep(0.01)
        self._gone = True
        raise JudgeLost("its node is gone")


async def test_a_measurement_that_waits_for_a_judge_that_is_lost_goes_to_another() -> None:
    for gpus in ("ab", "aa"):  # on another GPU, and on its own
        seen: list[tuple[str, tuple[str, ...]]] = []
        pool = Pool([Slot(Lost([], seen), gpus[0]), Slot(Slow([], seen), gpus[1])])
        judging = [asyncio.create_task(pool.judge(JOB)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*judging, pool.measure(MEASURE, lambda text: None)), 5)
        assert sorted(what for what, _ in seen) == ["judge", "judge", "measure"]


async def test_a_measurement_that_waits_for_the_only_judge_is_told_of_its_loss() -> None:
    pool = Pool([Slot(Lost([], []), "a")])
    asked = (pool.judge(JOB), pool.measure(MEASURE, lambda text: None))
    ends = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5)
    assert [type(end) for end in ends] == [JudgeLost] * 2


async def test_one_that_gives_up_waiting_to_measure_frees_no_judge_that_works() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []
    pool = Pool([Slot(Slow([], seen), "a")])
    judging = asyncio.create_task(pool.judge(JOB))
    await asyncio.sleep(0)
    measuring = asyncio.create_task(pool.measure(MEASURE, lambda text: None))
    await asyncio.sleep(0.005)
    measuring.cancel()
    await asyncio.wait_for(asyncio.gather(judging, pool.judge(JOB)), 5)
    assert seen == [("judge", ("judge",))] * 2, "one after the other"
