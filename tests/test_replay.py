"""A stored attempt judged again: by the real judge, from a real record."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config, kept, past, replay
from orchestrator.agents.recorded import RecordedAgent
from orchestrator.attempt import REPORT
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.past import Past
from orchestrator.records import Status, to_json
from orchestrator.redteam import entries
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel
from tests.test_loop import FALLBACK, block, script

pytestmark = pytest.mark.asyncio(loop_scope="session")
WRONG = zoo_kernel("divides_by_block")


async def played(op: Op, judge: LocalExecutor, folder: Path, *replies: str) -> Past:
    """A run in which the model gave these replies."""
    folder.mkdir(exist_ok=True)
    agent: RecordedAgent = script(folder / "replies", *replies)
    settings = config.load(flags={"loop": {"rounds": len(replies)}, "judge": {"device": "cpu"}})
    run = await run_op(op, agent, judge, settings, folder / "workspaces", Silent())
    return past.find(run.id, folder / "workspaces")


async def test_the_same_verdict_is_the_same_status_of_every_case(
    small_rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    replies = block(WRONG), block(FALLBACK), "no code at all"
    found = await played(small_rmsnorm, judge, tmp_path, *replies)
    stored = replay.stored(found, lambda name: small_rmsnorm)
    results = [await replay.replay(stored, number, judge) for number in (1, 2, 3)]
    assert [one.now.status for one in results] == [Status.WRONG_VALUES, Status.FALLBACK, Status.NO_CODE]
    assert all(one.same and not one.remarks for one in results)
    assert [case.seed for case in results[0].now.cases] == [case.seed for case in results[0].then.cases] != []
    assert replay.lines(results[1]) == (f"{found.run.id}#2: the same verdict: FALLBACK then, FALLBACK now",)

    # What was kept says otherwise than the judge does: a status, one case, the machine.
    kept = found.attempt_folder(found.attempt(1)) / REPORT
    then = results[0].then
    kept.write_text(to_json(replace(then, versions={**then.versions, "triton": "1.0"}, cases=then.cases[1:])))
    again = await replay.replay(stored, 1, judge)
    assert not again.same and len(again.otherwise) == 1
    told = "\n".join(replay.lines(again))
    assert "another verdict" in told and "triton 1.0 then" in told and "not judged then" in told
    assert "the record says WRONG_VALUES since" in told


async def test_what_cannot_be_repeated_is_refused(
    small_rmsnorm: Op, rmsnorm: Op, tmp_path: Path, judge: LocalExecutor
) -> None:
    found = await played(small_rmsnorm, judge, tmp_path, block(FALLBACK))
    with pytest.raises(UsageError, match="has changed since"):
        replay.stored(found, lambda name: rmsnorm)
    stored = replay.stored(found, lambda name: small_rmsnorm)
    with pytest.raises(UsageError, match="has no attempt 2; it has 1"):
        await replay.replay(stored, 2, judge)
    (found.attempt_folder(found.attempt(1)) / "reply.md").unlink()
    with pytest.raises(UsageError, match="the reply of attempt 1 is not in"):
        await replay.replay(stored, 1, judge)
    (found.workspaces / "rmsnorm.git").rename(tmp_path / "away.git")
    with pytest.raises(UsageError, match="copy it there"):
        replay.stored(found, lambda name: small_rmsnorm)


async def test_what_an_agent_left_in_its_tree_is_judged_from_git(
    small_rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    """Its tree is gone once the attempt is recorded; the kernel is in the commit."""
    found = await played(small_rmsnorm, judge, tmp_path, block(WRONG), "no code at all")
    stored = replay.stored(found, lambda name: small_rmsnorm)
    for number in (1, 2):
        folder = found.attempt_folder(found.attempt(number))
        reply = kept.reply(folder)
        kept.keep(replace(reply, text="I have written the file.", in_tree=True), folder)
    again = await replay.replay(stored, 1, judge)
    assert again.same and again.now.status is Status.WRONG_VALUES
    with pytest.raises(UsageError, match="ended in NO_CODE by its whole tree, which is not kept"):
        await replay.replay(stored, 2, judge)


async def test_a_run_or_an_attempt_is_named() -> None:
    assert past.parse("a-1#12") == ("a-1", 12) and past.parse("a-1") == ("a-1", None)
    for text in ("a-1#", "a-1#x", "a-1#-1", "a-1#²"):
        with pytest.raises(UsageError, match="number of an attempt, such as a-1#1"):
            past.parse(text)


def telling(count: int) -> list[bytes]:
    """Kernels of the corpora that end in as many ways as there are, two of each first, then honest ones."""
    seen: Counter[frozenset[Status]] = Counter()
    chosen = []
    known = [one for one in entries.read() if one.expected and not one.needs_gpu and not one.tampers]
    for one in sorted(known, key=lambda entry: entry.honest):
        seen[one.expected] += 1
        if one.honest or (len(one.expected) == 1 and seen[one.expected] <= 2):
            chosen.append(one.data())
    return chosen[:count]


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_twenty_stored_attempts_have_the_same_verdict_again(
    rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    """Whatever they ended in: a run each, then all of them from their records."""
    limits = {"import_s": 10, "call_s": 10, "compile_s": 10, "total_s": 120, "memory_mb": 2048, "processes": 16}
    settings = config.load(flags={"loop": {"rounds": 1}, "judge": {"device": "cpu", "limits": limits}})
    runs = []
    for number, kernel in enumerate(telling(20)):
        agent = script(tmp_path / f"replies-{number}", block(kernel))
        runs.append(await run_op(rmsnorm, agent, judge, settings, tmp_path / "workspaces", Silent()))
    results = []
    for run in runs:
        stored = replay.stored(past.find(run.id, tmp_path / "workspaces"), lambda name: rmsnorm)
        results.append(await replay.replay(stored, 1, judge))
    print("\n".join(line for one in results for line in replay.lines(one)))
    assert len(results) == 20 and len({one.then.status for one in results}) >= 8
    assert [replay.lines(one) for one in results if not one.same] == []
