"""Verdicts while their processes are killed at random.

    python benchmarks/kill_verdicts.py [--verdicts 200] [--device auto]

Judges two kernels in turn, one right and one wrong, over a small sweep with all checks, and in each verdict kills one
of the processes behind it (the judge, one of its fork servers, a candidate or a compiling process) with SIGKILL after a
random time. Prints what each kill led to and, last, PASS or FAIL:
PASS when every verdict is the right one, or the failure was recognised as ours and the same attempt, asked again, got
the right one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from orchestrator import ops, resources
from orchestrator.errors import JudgeError
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Job, Limits, Status

ZOO = Path(__file__).parent.parent / "tests" / "zoo" / "kernels"
KERNELS = (("good", Status.PASSED), ("divides_by_block", Status.WRONG_VALUES))
VICTIMS = ("judge", "fork server", "candidate")


def small(op: Op) -> Op:
    """The op with a few cases: every step of a verdict is there, and most of the time is not the interpreter's."""
    sweep = op.spec.sweep
    few = sweep.holdout.model_copy(update={"count": 2, "always": ()})
    shapes = {"shapes": ((3, 127), (5, 128)), "dtypes": ("float32", "bfloat16"), "telling": None, "holdout": few}
    return Op(op.folder, op.spec.model_copy(update={"sweep": sweep.model_copy(update=shapes)}), op.reference)


def child_of(pid: int | None, draw: random.Random) -> int | None:
    """One of the children of a process, by /proc."""
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(after_name[1]) == pid and after_name[0] != "Z":
                children.append(int(entry.name))
    return draw.choice(sorted(children)) if children else None


async def kill_soon(executor: LocalExecutor, victim: str, seconds: float, draw: random.Random) -> bool:
    """Kill after a while; whether there was somebody to kill."""
    await asyncio.sleep(seconds)
    pid = executor.pid
    for _ in range(VICTIMS.index(victim)):
        pid = child_of(pid, draw) if pid is not None else None
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def job(op: Op, kernel: str, folder: Path) -> Job:
    """A quick job for a kernel of the zoo."""
    (folder / "scratch").mkdir(parents=True)
    for name, data in {**op.workspace_files(), op.spec.kernel_name: (ZOO / f"{kernel}.py").read_bytes()}.items():
        (folder / name).write_bytes(data)
    return Job(
        id=folder.name,
        nonce=secrets.token_hex(8),
        folder=str(folder),
        op=op.name,
        kernel=op.spec.kernel_name,
        function=op.spec.function,
        arguments=tuple(op.spec.inputs),
        parameters=op.spec.parameters,
        quick=True,
        limits=Limits(call_s=20, total_s=120),
    )


async def verdicts(count: int, device: str, seed: int) -> bool:
    """All verdicts; whether all were right in the end."""
    op = small(ops.load("rmsnorm", resources.shipped("configs") / "ops"))
    draw = random.Random(seed)
    outcomes: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        executor = LocalExecutor(device, Path(place) / "judge.log")
        judging = await executor.start()
        print(f"seed {seed}; {judging.device}; {', '.join(f'{k} {v}' for k, v in judging.versions.items())}")
        typical_s = await _typical(executor, op, Path(place))
        for number in range(count):
            kernel, expected = KERNELS[number % len(KERNELS)]
            victim = draw.choice(VICTIMS)
            killing = asyncio.create_task(kill_soon(executor, victim, draw.uniform(0, typical_s), draw))
            folder = Path(place) / f"job-{number}"
            how = "right at once"
            try:
                report = await executor.judge(job(op, kernel, folder))
            except JudgeError:
                how = "ours, right when asked again"
                report = await executor.judge(job(op, kernel, folder.with_suffix(".again")))
            killed = await killing
            right = report.status is expected
            wrong += not right
            if (number + 1) % 20 == 0:
                print(f"  {number + 1} verdicts, {wrong} wrong", file=sys.stderr, flush=True)
            outcomes[f"{victim if killed else 'nobody'} killed: {how if right else f'WRONG ({report.status})'}"] += 1
        await executor.close()
    for outcome, times in sorted(outcomes.items()):
        print(f"{times:5}  {outcome}")
    return not wrong


async def _typical(executor: LocalExecutor, op: Op, place: Path) -> float:
    begun = time.perf_counter()
    await executor.judge(job(op, "good", place / "typical"))
    return time.perf_counter() - begun


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--verdicts", type=int, default=200)
    parser.add_argument("--device", default="auto", choices=["auto", "gpu", "cpu"])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args()
    passed = asyncio.run(verdicts(options.verdicts, options.device, options.seed))
    print(f"{'PASS' if passed else 'FAIL'}: {options.verdicts} verdicts, one process killed in each")
    sys.exit(0 if passed else 1)
