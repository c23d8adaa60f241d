"""How long a verdict takes, from a model's reply to the report.

    python benchmarks/verdict_speed.py [--device auto] [--limit 10]

Judges the recorded rmsnorm kernel three times, as the loop does (tree, guard, policy, export, sandboxed sweep), each
time with an empty Triton cache, by one judge process that is started before. Prints the parts of each verdict and,
last, PASS or FAIL: PASS when every verdict is PASSED and takes less than the limit. The number of cases is the
machine's: the full sweep on a GPU, the quick one without.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from orchestrator import config, ops, resources
from orchestrator.attempt import judge_reply
from orchestrator.executors.local import LocalExecutor
from orchestrator.records import Reply, Usage
from orchestrator.workspace import Workspace


async def measure(device: str, limit_s: float) -> bool:
    """Three verdicts; whether all passed within the limit."""
    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    reply = Reply((op.recorded / "correct-1.md").read_text(), "recorded", Usage(latency_s=0))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        executor = LocalExecutor(device, root / "judge.log")
        begun = time.perf_counter()
        judging = await executor.start()
        print(f"{judging.device}; {', '.join(f'{k} {v}' for k, v in judging.versions.items())}")
        print(f"judge started in {time.perf_counter() - begun:.2f} s")
        branch = Workspace.open(root, op.name).start_run(op.workspace_files(), "speed")
        good = [await one(number, reply, op, branch, executor, root, limit_s) for number in range(1, 4)]
        await executor.close()
    return all(good)


async def one(number: int, reply: Reply, op, branch, executor, root: Path, limit_s: float) -> bool:  # type: ignore[no-untyped-def]
    """One verdict, printed."""
    begun = time.perf_counter()
    judged = await judge_reply(reply, op, branch, executor, config.load().judge, root / f"attempt-{number}")
    took = time.perf_counter() - begun
    report = judged.report
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds.items())
    print(f"verdict {number}: {took:.2f} s ({report.status}, {report.message}; in the judge: {parts})")
    slowest = sorted(report.cases, key=lambda case: -case.seconds)[:3]
    print("  slowest cases: " + ", ".join(f"{case.name} {case.seconds:.2f} s" for case in slowest))
    if not report.passed:
        print(report.detail)
    return report.passed and took < limit_s


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="auto", choices=["auto", "gpu", "cpu"])
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a verdict may take")
    options = parser.parse_args()
    passed = asyncio.run(measure(options.device, options.limit))
    print(f"{'PASS' if passed else 'FAIL'}: every verdict passed within {options.limit:g} s" if passed else "FAIL")
    sys.exit(0 if passed else 1)
