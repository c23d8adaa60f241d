"""What the driver of a batch costs: many ops, a scripted model and a scripted judge, real everything else.

    python benchmarks/scale.py [--ops 10,100,1000] [--resumed 10000] [--compression 10] [--seed N] [--out FILE]

Each attempt waits as long as a model's reply takes (drawn from a lognormal distribution with its median at 20 s,
divided by the compression), then as long as a verdict takes; a kernel that passes is measured. What lies between the
waits is the driver's own: prompts, git, guard, policy, the record, the ledger. Each size is a process of its own.
Prints PASS when

* the largest number of ops is carried out at 95 % of the ideal throughput: the same waits, given in the same order to
  as many slots, and nothing between them;
* the driver's memory is flat in the number of finished ops: its RSS grows by less than 4 KiB an op over the second
  half, of which an outcome is 600 bytes, and a page once touched is seldom given back;
* an attempt costs less than 50 ms beyond its waits, as its op sees it, the others' costs included;
* a batch of 10,000 ops, all but sixteen of them over, is gone on with in less than 2 s, until another begins.

With --out the results are appended there as Markdown, with the machine and the versions.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402

from orchestrator import batch, config, kept, ledger, ops, plan, resources  # noqa: E402
from orchestrator.agents import Agent, Request  # noqa: E402
from orchestrator.batch import Agents, Work  # noqa: E402
from orchestrator.config import Settings  # noqa: E402
from orchestrator.executors.pool import Pool, Slot  # noqa: E402
from orchestrator.measured import Measured, MeasureJob  # noqa: E402
from orchestrator.ops import Op  # noqa: E402
from orchestrator.outcome import Outcome  # noqa: E402
from orchestrator.plan import Planned  # noqa: E402
from orchestrator.progress import Progress  # noqa: E402
from orchestrator.recorder import RUN  # noqa: E402
from orchestrator.records import Decision as Decided  # noqa: E402
from orchestrator.records import Job, Judging, Reply, Report, Run, Status, Usage, Verdict, to_json  # noqa: E402
from tests.scripted_judge import Script, ScriptedJudge, key  # noqa: E402

SLOTS, JUDGES = 16, 8
MEDIAN_S, SPREAD = 20.0, 0.5  # of a reply; the spread is that of its logarithm
JUDGED_S, MEASURED_S = 3.0, 5.0  # before compression
ENOUGH, FLAT_BYTES, ATTEMPT_MS, RESUME_S = 0.95, 4096, 50.0, 2.0
COLUMNS = (
    *("ops", "attempts", "seconds", "ideal", "of the ideal", "an attempt", "driver busy", "memory"),
    *("an op, second half", "ledger"),
)
LEFT = 16  # ops of the resumed batch that are not over
REPLY = Reply("", "scripted", Usage(20.0, 4000, 2000))
ZOO = ROOT / "tests" / "zoo" / "kernels"
WRONG, GOOD = ((ZOO / f"{name}.py").read_bytes() for name in ("divides_by_block", "good"))


@dataclass(frozen=True)
class Waits:
    """What an op waits for: a reply and a verdict an attempt, the last of which passes; then a measurement."""

    replies: tuple[float, ...]
    judged: float
    measured: float

    @property
    def seconds(self) -> float:
        return sum(self.replies) + self.judged * len(self.replies) + self.measured


@dataclass(frozen=True)
class Size:
    """What a batch of so many ops came to."""

    ops: int
    attempts: int
    seconds: float
    ideal_s: float
    attempt_ms: float  # beyond its waits
    driver_share: float  # of the wall time that the driver's process was computing
    rss_mb: float  # at the end
    bytes_an_op: float  # of memory, over the second half
    ledger_kb: float

    @property
    def of_ideal(self) -> float:
        return self.ideal_s / self.seconds


def waits(count: int, seed: int, compression: float) -> list[Waits]:
    """The same for the same seed."""
    draw = random.Random(seed)
    return [
        Waits(
            tuple(MEDIAN_S * draw.lognormvariate(0, SPREAD) / compression for _ in range(draw.choice((1, 1, 2, 3)))),
            JUDGED_S / compression,
            MEASURED_S / compression,
        )
        for _ in range(count)
    ]


def ideal(todo: Sequence[Waits]) -> float:
    """The time in which as many slots do nothing but wait, one op after the other."""
    free = [0.0] * SLOTS
    for one in todo:
        heapq.heapreplace(free, free[0] + one.seconds)
    return max(free)


class Model:
    """Answers after a while: the right kernel in the last of an op's rounds."""

    name = "scripted"

    def __init__(self, op: Op, one: Waits) -> None:
        self._op = op
        self._waits = one

    async def propose(self, request: Request) -> Reply:
        seconds = self._waits.replies[request.round - 1]
        await asyncio.sleep(seconds)
        kernel = GOOD if request.round == len(self._waits.replies) else WRONG
        text = f"```python {self._op.spec.kernel_name}\n{kernel.decode().strip()}\n```\n"
        return Reply(text, "scripted", Usage(seconds, 4000, 2000))


class Models(Agents):
    """One model an op."""

    def __init__(self, of: dict[str, Waits]) -> None:
        super().__init__(lambda text: None)
        self._of = of

    def of(self, op: Op, settings: Settings) -> Agent:
        return Model(op, self._of[op.name])


class Slow(ScriptedJudge):
    """Verdicts and measurements that take a while."""

    def __init__(self, compression: float, log: Path) -> None:
        super().__init__({key(GOOD): Script(Status.PASSED), key(WRONG): Script(Status.WRONG_VALUES)}, log)
        self._compression = compression
        self._versions = {name: version(name) for name in ("torch", "triton")}  # so that the guide to them is kept

    async def start(self) -> Judging:
        return replace(await super().start(), versions=self._versions)

    async def judge(self, job: Job) -> Report:
        await asyncio.sleep(JUDGED_S / self._compression)
        return await super().judge(job)

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        await asyncio.sleep(MEASURED_S / self._compression)
        return await super().measure(job, tell)


class Sampling(Progress):
    """Notes the process's memory whenever an op has ended, and when the first one began."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True), quiet=True)
        self.rss: list[int] = []
        self.first = 0.0

    def doing(self, op: str, what: str) -> None:
        self.first = self.first or time.monotonic()
        super().doing(op, what)

    def ended(self, outcome: Outcome, *, earlier: bool) -> None:
        super().ended(outcome, earlier=earlier)
        if not earlier:
            self.rss.append(_rss())


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def means(place: Path, of: dict[str, Waits], index: ledger.Ledger, compression: float) -> batch.Means:
    """A batch's means: one op's folder under many names."""
    base, settings = (
        ops.load("rmsnorm", resources.shipped("configs") / "ops"),
        config.load(overrides=(f"docs.folder={place / 'docs'}",)),
    )

    def work_of(one: Planned) -> Work:
        return Work(one, Op(base.folder, base.spec.model_copy(update={"name": one.op}), base.reference), settings)

    # A card each, so that judging and measuring wait for nothing but themselves.
    pool = Pool([Slot(Slow(compression, place / "spent.log"), str(number)) for number in range(JUDGES)])
    return batch.Means(
        *(work_of, settings.budget.batch, Models(of), pool, place / "workspaces", index, Sampling()),
    )


def carried_out(count: int, place: Path, seed: int, compression: float) -> Size:
    """A batch of so many ops."""
    drawn = waits(count, seed, compression)
    todo = plan.new([plan.Wanted(f"op{number}") for number in range(count)])
    of = {one.op: wait for one, wait in zip(todo.ops, drawn, strict=True)}
    with closing(ledger.Ledger(place / "workspaces")) as index:
        ready = means(place, of, index, compression)
        begun, computed = time.monotonic(), time.process_time()
        outcomes = asyncio.run(batch.carry_out(todo, ready, SLOTS))
        seconds, computed = time.monotonic() - begun, time.process_time() - computed
        assert {one.decision for one in outcomes} == {"MERGE"}, outcomes
    attempts = sum(len(one.replies) for one in drawn)
    beyond = sum(one.seconds for one in outcomes) - sum(one.seconds for one in drawn)
    rss = ready.progress.rss  # type: ignore[attr-defined]
    half = len(rss) // 2
    return Size(
        ops=count,
        attempts=attempts,
        seconds=seconds,
        ideal_s=ideal(drawn),
        attempt_ms=1e3 * beyond / attempts,
        driver_share=computed / seconds,
        rss_mb=rss[-1] / (1 << 20),
        bytes_an_op=(rss[-1] - rss[half]) / max(len(rss) - half - 1, 1),
        ledger_kb=(place / "workspaces" / ledger.NAME).stat().st_size / 1024,
    )


def prepared(count: int, workspaces: Path) -> plan.Plan:
    """A batch all of whose ops but a few are over: the run folders and the rows that it would have left."""
    todo = plan.new([plan.Wanted(f"op{number}") for number in range(count)])
    plan.keep(todo, workspaces)
    with closing(ledger.Ledger(workspaces)) as index, index.whole():
        for one in todo.ops[:-LEFT]:
            verdict = Verdict(Decided.ABANDON, "as prepared")
            run = Run(one.run, one.op, f"run/{one.run}", "0" * 40, todo.started, "scripted", verdict=verdict)
            (workspaces / "runs" / one.run).mkdir(parents=True)
            (workspaces / "runs" / one.run / RUN).write_text(to_json(run))
            index.put("runs", ledger.run_row(run))
            index.put("decisions", ledger.decision_row(run, ""))
            index.put("model_calls", ledger.call_row(one.run, 1, "correct", 1, kept.call_of(REPLY)))
    return todo


def resumed(count: int, place: Path, compression: float) -> float:
    """The seconds until the first op that is left begins."""
    prepared(count, place / "workspaces")
    begun = time.monotonic()
    todo = plan.newest(place / "workspaces")
    of = {one.op: Waits((0.01,), 0.01, 0.01) for one in todo.ops[-LEFT:]}
    with closing(ledger.Ledger(place / "workspaces")) as index:
        ready = means(place, of, index, compression * 100)
        outcomes = asyncio.run(batch.carry_out(todo, ready, SLOTS))
    assert len(outcomes) == count and sum(one.decision == "MERGE" for one in outcomes) == LEFT
    return float(ready.progress.first - begun)  # type: ignore[attr-defined]


def in_a_process(what: str, count: int, options: argparse.Namespace) -> Any:
    """One measurement, in a process of its own, whose memory nothing else has touched."""
    numbers = ("--seed", str(options.seed), "--compression", str(options.compression))
    command = [sys.executable, __file__, "--one", what, str(count), *numbers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def one(what: str, count: int, options: argparse.Namespace) -> None:
    """What `in_a_process` starts."""
    with tempfile.TemporaryDirectory() as folder:
        if what == "resumed":
            print(json.dumps(resumed(count, Path(folder), options.compression)))
        else:
            print(json.dumps(asdict(carried_out(count, Path(folder), options.seed, options.compression))))


def machine() -> str:
    """Where this was measured."""
    known = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(":")[2].strip() for line in known if "model name" in line), platform.processor())
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    versions = {"python": platform.python_version(), "git": git, "SQLite": ledger.sqlite3.sqlite_version}
    versions |= {name: version(name) for name in ("gitpython", "gitdb", "pydantic")}
    told = ", ".join(f"{name} {number}" for name, number in versions.items())
    return f"{cpu}, {os.cpu_count()} cores, Linux {platform.release()}, load {load} at the start; {told}"


def lines(
    sizes: Sequence[Size], resume: tuple[int, float] | None, where: str, options: argparse.Namespace
) -> list[str]:
    """The results as Markdown."""
    text = [
        f"## {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, compressed {options.compression:g}:1, seed {options.seed}",
        "",
        where,
        "",
        f"{SLOTS} ops at once, {JUDGES} judges. An attempt's cost is what its op sees beyond its waits.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|" + "---|" * len(COLUMNS),
    ]
    for size in sizes:
        cells = (
            *(f"{size.ops}", f"{size.attempts}", f"{size.seconds:.1f}", f"{size.ideal_s:.1f}", f"{size.of_ideal:.1%}"),
            *(f"{size.attempt_ms:.1f} ms", f"{size.driver_share:.0%}", f"{size.rss_mb:.0f} MiB"),
            *(f"{size.bytes_an_op:.0f} B", f"{size.ledger_kb:.0f} KiB"),
        )
        text.append(f"| {' | '.join(cells)} |")
    if resume is not None:
        text += ["", f"A batch of {resume[0]} ops, {LEFT} of them left, was gone on with after {resume[1]:.2f} s."]
    return [*text, ""]


def faults(sizes: Sequence[Size], resume: tuple[int, float] | None) -> list[str]:
    """What is not as it should be."""
    largest = max(sizes, key=lambda size: size.ops)
    found = []
    if largest.of_ideal < ENOUGH:
        found.append(f"{largest.ops} ops at {largest.of_ideal:.1%} of the ideal, below {ENOUGH:.0%}")
    if largest.bytes_an_op > FLAT_BYTES:
        found.append(f"memory grows by {largest.bytes_an_op:.0f} bytes an op, above {FLAT_BYTES}")
    if largest.attempt_ms > ATTEMPT_MS:
        found.append(f"an attempt costs {largest.attempt_ms:.1f} ms, above {ATTEMPT_MS:g}")
    if resume is not None and resume[1] > RESUME_S:
        found.append(f"going on takes {resume[1]:.2f} s, above {RESUME_S:g}")
    return found


def run(options: argparse.Namespace) -> bool:
    """All sizes; whether nothing is wrong."""
    where, sizes = machine(), []
    for count in options.ops:
        sizes.append(Size(**in_a_process("ops", count, options)))
        print(f"{count} ops: {sizes[-1]}", file=sys.stderr, flush=True)
    resume = (options.resumed, in_a_process("resumed", options.resumed, options)) if options.resumed else None
    wrong = faults(sizes, resume)
    said = f"FAIL: {'; '.join(wrong)}" if wrong else "PASS"
    text = "\n".join([*lines(sizes, resume, where, options), said, ""])
    print(text)
    if options.out:
        with options.out.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    return not wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ops", type=lambda text: [int(part) for part in text.split(",")], default=[10, 100, 1000])
    parser.add_argument("--resumed", type=int, default=10000)
    parser.add_argument("--compression", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "COUNT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one[0], int(given.one[1]), given)
    else:
        sys.exit(0 if run(given) else 1)
