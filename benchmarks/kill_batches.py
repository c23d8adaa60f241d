"""Batches whose process is killed and that are taken up again.

    python benchmarks/kill_batches.py [--kills 200] [--ops 4] [--samples 1] [--seed N]

Carries out a small batch with recorded replies and scripted verdicts (what is tried is the record, not the judge), in
a process of its own. It is killed with SIGKILL before one of its writes, renames, git commands or SQL statements,
spread over all of them, or after a random time; every third time it is killed once more while it goes on. Then it is
taken up and ends. Prints PASS when each time

* git holds the commits of an undisturbed batch, no more and no fewer, with the same files;
* the ledger holds the rows of an undisturbed batch, and is what `ledger rebuild` makes of git and the run folders;
* no reply was asked for, no kernel judged and none measured again for which an answer had been kept.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator import batch, config, ledger, ops, plan, resources  # noqa: E402
from orchestrator.agents import Agent, Request  # noqa: E402
from orchestrator.batch import Agents, Work  # noqa: E402
from orchestrator.config import Settings  # noqa: E402
from orchestrator.errors import UsageError  # noqa: E402
from orchestrator.executors.pool import Pool, Slot  # noqa: E402
from orchestrator.ops import Op  # noqa: E402
from orchestrator.outcome import Outcome  # noqa: E402
from orchestrator.progress import Progress  # noqa: E402
from orchestrator.records import Reply, Status  # noqa: E402
from tests.scripted_judge import Script, ScriptedJudge, key  # noqa: E402

ZOO = ROOT / "tests" / "zoo"
NO_CODE = "I would rather not."
STEPS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "subprocess.Popen")  # audit events
CHANGES = ("started", "seconds", "latency_s", "seed")  # from one undisturbed batch to the next


class Scenario:
    """The ops of the batch with their recorded replies, and the verdicts on their kernels."""

    def __init__(self, folder: Path, count: int, samples: int = 1) -> None:
        self.scripts: dict[str, Script] = {}
        self.overrides = ("agent.name=recorded", f"loop.samples={samples}")
        shipped = resources.shipped("configs") / "ops"
        rms, layer, soft = (self._kernel(name) for name in ("kernels/good", "ops/layernorm", "ops/softmax"))
        wrong = self._kernel("kernels/divides_by_block", Script(Status.WRONG_VALUES))
        replies = {
            "rmsnorm": {"correct-1": wrong, "correct-2": rms},  # merged
            "layernorm": {  # slower, then faster than its first kernel: merged after another stage
                "correct-1": layer,
                "optimize-1": self._kernel("ops/layernorm", Script(Status.PASSED, 30.0), b"# better\n"),
            },
            "softmax": {"correct-1": NO_CODE, "correct-2": soft},  # at parity, and no reply for another stage
            "vector_add": {"correct-1": NO_CODE, "correct-2": NO_CODE, "correct-3": NO_CODE},  # a person looks
        }
        if samples > 1:  # the others have no more: calls that fail beside one that does not
            replies["rmsnorm"] |= {"correct-1.2": NO_CODE, "correct-2.2": wrong, "correct-2.3": rms}
            better = self._kernel("ops/layernorm", Script(Status.PASSED, 20.0), b"# still better\n")
            replies["layernorm"] |= {"correct-1.2": wrong, "optimize-1.2": better}
        self.scripts[key(layer.encode())] = Script(Status.PASSED, 60.0)
        self.scripts[key(soft.encode())] = Script(Status.PASSED, 50.0)
        self.ops = [self._op(ops.load(name, shipped), folder / name, replies[name]) for name in list(replies)[:count]]

    def _kernel(self, name: str, script: Script | None = None, more: bytes = b"") -> str:
        kernel = (ZOO / f"{name}.py").read_bytes() + more
        self.scripts[key(kernel)] = script or Script(Status.PASSED)
        return kernel.decode()

    def _op(self, op: Op, folder: Path, replies: dict[str, str]) -> Op:
        recorded = folder / "recorded"
        recorded.mkdir(parents=True)
        entries = []
        for name, kernel in replies.items():
            text = kernel if kernel == NO_CODE else f"```python {op.spec.kernel_name}\n{kernel.strip()}\n```\n"
            (recorded / f"{name}.md").write_text(text)
            entries.append({"file": f"{name}.md", "model": "scripted", "date": date(2026, 1, 1)})
        digest = {"prompt_sha256": "0" * 64}
        (recorded / "recorded.yaml").write_text(yaml.safe_dump([entry | digest for entry in entries]))
        return Op(folder, op.spec, op.reference)


class Asked:
    """An agent that notes, before it answers, that it was asked."""

    def __init__(self, agent: Agent, log: Path) -> None:
        self.name = agent.name
        self._agent = agent
        self._log = log

    async def propose(self, request: Request) -> Reply:
        with self._log.open("a") as file:
            file.write(f"ask {request.folder}\n")
        return await self._agent.propose(request)


class AgentsThatNote(Agents):
    """The batch's agents, each of which notes that it was asked."""

    def __init__(self, log: Path) -> None:
        super().__init__(lambda text: None)
        self._log = log

    def of(self, op: Op, settings: Settings) -> Agent:
        return Asked(super().of(op, settings), self._log)


def carry_out(
    scenario: Scenario, place: Path, overrides: tuple[str, ...] = (), concurrency: int = 2
) -> tuple[Outcome, ...]:
    """Begin the batch in that folder, or go on with it."""
    workspaces, log = place / "workspaces", place / "spent.log"
    settings = config.load(overrides=overrides or scenario.overrides)
    try:
        todo = plan.newest(workspaces)
    except UsageError:
        todo = plan.new([plan.Wanted(op.name) for op in scenario.ops])
    by_name = {op.name: op for op in scenario.ops}
    pool = Pool([Slot(ScriptedJudge(scenario.scripts, log))])
    progress = Progress(Console(quiet=True), quiet=True)
    with closing(ledger.Ledger(workspaces)) as index:
        means = batch.Means(
            *(lambda one: Work(one, by_name[one.op], settings), settings.budget.batch, AgentsThatNote(log), pool),
            *(workspaces, index, progress),
        )
        return asyncio.run(batch.carry_out(todo, means, concurrency))


def in_a_process(scenario: Scenario, place: Path, on_step: Callable[[], None] = lambda: None) -> int:
    """Carry the batch out in a fork. Returns its id; `on_step` is called there before each step."""
    pid = os.fork()
    if pid:
        return pid
    try:
        sys.addaudithook(lambda event, args: on_step() if _is_step(event, args) else None)
        _trace_sql(on_step)
        carry_out(scenario, place)
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)


def _trace_sql(on_step: Callable[[], None]) -> None:
    """Python has no audit event for a statement; SQLite tells of it itself."""
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda statement: on_step())
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]


def _is_step(event: str, args: tuple[object, ...]) -> bool:
    """Whether something is about to change outside the process."""
    if event != "open":
        return event in STEPS
    return isinstance(args[2], int) and bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def killed_at(scenario: Scenario, place: Path, step: int) -> bool:
    """Whether the batch was killed before that step; not if it ended before."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return _ended_by_kill(in_a_process(scenario, place, count))


def killed_after(scenario: Scenario, place: Path, seconds: float) -> bool:
    """Whether the batch was killed after that time; not if it ended before."""
    pid = in_a_process(scenario, place)
    time.sleep(seconds)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return _ended_by_kill(pid)


def _ended_by_kill(pid: int) -> bool:
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit("the batch failed; what it said is above")
    return False


def steps_of(scenario: Scenario, place: Path) -> tuple[int, float]:
    """How many steps an undisturbed batch has, and how long it takes."""
    begun, steps = time.monotonic(), 0
    read, write = os.pipe()

    def count() -> None:
        nonlocal steps
        steps += 1
        os.write(write, b".")

    with os.fdopen(read, "rb") as pipe:
        pid = in_a_process(scenario, place, count)
        os.close(write)
        steps = len(pipe.read())
        _ended_by_kill(pid)
    return steps, time.monotonic() - begun


def in_git(workspaces: Path) -> tuple[dict[str, list[object]], dict[str, str]]:
    """Every op's commits, whatever names and times are in them; and what each commit is called in that."""
    story: dict[str, list[object]] = {}
    called: dict[str, str] = {"": ""}
    for repository in sorted(workspaces.glob("*.git")):
        op = repository.name.removesuffix(".git")
        story[op] = []
        log = _git(
            repository, "log", "--all", "--topo-order", "--reverse", "--format=%H|%P|%s|%(trailers:separator=%x3b)"
        )
        for number, line in enumerate(log.splitlines()):
            commit, parents, subject, trailers = line.split("|", 3)
            called[commit] = f"{op} {number}"
            tree = _git(repository, "ls-tree", commit).splitlines()
            files = [entry for entry in tree if not entry.endswith("DECISION.md")]  # it has times
            has_decision = len(files) < len(tree)
            known = [called[parent] for parent in parents.split()]
            story[op].append((_nameless(subject), known, files, has_decision, _nameless(trailers)))
        refs = _git(repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        story[op].append(sorted(_nameless(ref.split()[0]) + " " + called[ref.split()[1]] for ref in refs))
        _git(repository, "fsck", "--strict")
    return story, called


def in_ledger(workspaces: Path, called: dict[str, str]) -> dict[str, list[dict[str, object]]]:
    """The ledger's rows, whatever names and times are in them."""
    return {table: [_comparable(table, row, called) for row in found] for table, found in rows(workspaces).items()}


def _comparable(table: str, row: ledger.Row, called: dict[str, str]) -> dict[str, object]:
    commits = {"git_commit", "merge_commit"} | ({"baseline"} if table == "runs" else set())
    kept = {name: value for name, value in row.items() if name not in CHANGES or table == "measurements"}
    return {
        name: called[str(value)] if name in commits else _nameless(value) if isinstance(value, str) else value
        for name, value in kept.items()
    }


def _nameless(text: str) -> str:
    return re.sub(r"-\d{8}-\d{6}-[0-9a-f]{7}", "", text)


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def rows(workspaces: Path) -> dict[str, list[ledger.Row]]:
    """The whole ledger, as it is."""
    with closing(ledger.Ledger(workspaces)) as index:
        return {table: index.rows(table) for table in ledger.TABLES}


def paid(place: Path) -> set[str]:
    """The jobs for which an answer is kept, as they stand in the log of what was spent."""
    runs = place / "workspaces" / "runs"
    kinds = (("ask", "attempts/*/reply.md", ""), ("ask", "attempts/*/report.json", ""))  # known to have no reply
    kinds += (("judge", "attempts/*/report.json", "/job"),)
    kinds += (("measure", "measurements/*/measured.json", "/job"),)
    return {f"{kind} {path.parent}{job}" for kind, glob, job in kinds for path in runs.glob(f"*/{glob}")}


def spent(place: Path) -> Counter[str]:
    """The jobs that were asked for so far."""
    log = place / "spent.log"
    return Counter(log.read_text().splitlines()) if log.is_file() else Counter()


def faults(scenario: Scenario, place: Path, want: tuple[object, object], kills: list[Callable[[], bool]]) -> list[str]:
    """What is wrong after the batch was killed so and then taken up; nothing if all is well."""
    found = []
    for kill in kills:
        answered, before = paid(place), spent(place)
        kill()
        again = [job for job in answered if spent(place)[job] > before[job]]
        found += [f"asked again although it was kept: {job}" for job in again]
    answered, before = paid(place), spent(place)
    if _ended_by_kill(in_a_process(scenario, place)):
        return [*found, "the batch that was taken up was killed by somebody else"]
    found += [f"asked again although it was kept: {job}" for job in answered if spent(place)[job] > before[job]]
    story, called = in_git(place / "workspaces")
    if story != want[0]:
        found.append(f"git differs: {_first_difference(want[0], story)}")
    entered = in_ledger(place / "workspaces", called)
    if entered != want[1]:
        found.append(f"the ledger differs: {_first_difference(want[1], entered)}")
    live = rows(place / "workspaces")
    ledger.rebuild(place / "workspaces")
    if (rebuilt := rows(place / "workspaces")) != live:
        found.append(f"rebuilding changes the ledger: {_first_difference(live, rebuilt)}")
    return found


def _first_difference(want: object, got: object) -> str:
    if isinstance(want, dict) and isinstance(got, dict):
        names = [name for name in {**want, **got} if want.get(name) != got.get(name)]
        return f"{names[0]}: {_first_difference(want.get(names[0]), got.get(names[0]))}"
    if isinstance(want, list | tuple) and isinstance(got, list | tuple) and len(want) == len(got):
        return _first_difference(*next((one, other) for one, other in zip(want, got, strict=True) if one != other))
    return f"undisturbed {want!r}, now {got!r}"


def kills_of(number: int, count: int, steps: int, seconds: float, draw: random.Random) -> tuple[int, float, int]:
    """Which kill comes: the step before which, the time after which (one is 0), and the step of a second one."""
    second = draw.randrange(1, steps // 2) if number % 3 == 2 else 0
    if number % 4 == 3:
        return 0, draw.uniform(0, seconds), second
    return 1 + number * steps // count, 0.0, second


def run(count: int, how_many_ops: int, seed: int, samples: int = 1) -> bool:
    """All kills; whether nothing was wrong after any of them."""
    draw, wrong = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        scenario = Scenario(top / "ops", how_many_ops, samples)
        steps, seconds = steps_of(scenario, top / "undisturbed")
        story, called = in_git(top / "undisturbed" / "workspaces")
        want = (story, in_ledger(top / "undisturbed" / "workspaces", called))
        print(
            f"seed {seed}; {how_many_ops} ops, {samples} samples, {steps} steps, {seconds:.1f} s undisturbed",
            flush=True,
        )
        for number in range(count):
            place = top / f"killed-{number}"
            place.mkdir()
            step, after_s, second = kills_of(number, count, steps, seconds, draw)
            kills = [lambda: killed_at(scenario, place, step) if step else killed_after(scenario, place, after_s)]  # noqa: B023
            kills += [lambda: killed_at(scenario, place, second)] if second else []  # noqa: B023
            found = faults(scenario, place, want, kills)
            wrong += bool(found)
            for fault in found:
                print(f"  killed {f'before step {step}' if step else f'after {after_s:.3f} s'}, {second}: {fault}")
            shutil.rmtree(place)
            if (number + 1) % 20 == 0:
                print(f"  {number + 1} killed, {wrong} of them wrong", file=sys.stderr, flush=True)
    print(f"{'FAIL' if wrong else 'PASS'}: {count} batches killed and taken up again, {wrong} of them wrong")
    return not wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--ops", type=int, default=4, choices=[1, 2, 3, 4])
    parser.add_argument("--samples", type=int, default=1, help="asked for at once in a round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args()
    sys.exit(0 if run(options.kills, options.ops, options.seed, options.samples) else 1)
