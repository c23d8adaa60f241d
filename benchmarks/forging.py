"""Kernels that try to look faster than they are, timed as a run would time them.

    python benchmarks/forging.py

Times an honest kernel and each of tests/zoo/timing, all of which launch that same kernel and cheat about when, without
asking the policy or the sweep, which refuse most of them before. A cheat may be convicted or be told its true time.
Prints what became of each and, last, PASS or FAIL: PASS when none came out more than 5 % faster than the honest one at
any shape. Needs a GPU.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from orchestrator import config, ops, resources
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge.timing.statistics import latency_us
from orchestrator.measured import AUTOTUNED, COMPILED, Measured
from orchestrator.measuring import Rivals, job_of
from orchestrator.ops import Op
from orchestrator.records import Status
from orchestrator.tree import lay_out

ZOO = Path(__file__).parent.parent / "tests" / "zoo"
SHAPES = ((4096, 1024), (4096, 1152), (16384, 4096))
GAIN = 1.05


async def times(kernel: Path, op: Op, executor: LocalExecutor, folder: Path) -> Measured:
    """The kernel beside the eager reference and torch's own op."""
    lay_out({**op.workspace_files(), op.spec.kernel_name: kernel.read_bytes()}, folder)
    job = job_of(op, config.load(overrides=("measure.rounds=16",)), folder, Rivals())
    job = replace(job, curve=(), shapes=SHAPES, dtypes=("bfloat16",), without=(COMPILED, AUTOTUNED, "liger"))
    return await executor.measure(job, lambda text: print(f"    {text}", flush=True))


async def forge() -> bool:
    """Whether no cheat gained."""
    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        log = root / "judge.log"
        executor = LocalExecutor("gpu", log)
        try:
            judging = await executor.start()
            print(f"{judging.device}; {', '.join(f'{k} {v}' for k, v in judging.versions.items())}", flush=True)
            honest = await times(ZOO / "timing" / "honest" / "one_block.py", op, executor, root / "honest")
            print(f"honest: {honest.status}, {honest.message}", flush=True)
            held = honest.status is Status.PASSED
            for kernel in sorted((ZOO / "timing").glob("*.py")) if held else []:
                held &= await one(kernel, honest, op, executor, root / kernel.stem)
        finally:
            await executor.close()
            print(log.read_text(errors="replace")[-8000:] if log.is_file() else "", file=sys.stderr)
    return held


async def one(kernel: Path, honest: Measured, op: Op, executor: LocalExecutor, folder: Path) -> bool:
    """Whether this cheat gained nothing."""
    begun = time.perf_counter()
    print(f"{kernel.stem}", flush=True)
    found = await times(kernel, op, executor, folder)
    took = f"{time.perf_counter() - begun:.1f} s"
    if found.status is not Status.PASSED:
        print(f"  convicted, {found.status}: {found.message} ({took})", flush=True)
        return True
    gains = {
        mine.name: latency_us(theirs.candidate.latencies_us) / latency_us(mine.candidate.latencies_us)
        for mine, theirs in zip(found.shapes, honest.shapes, strict=True)
    }
    print(f"  not convicted; times the honest speed: {', '.join(f'{k} {v:.3f}' for k, v in gains.items())} ({took})")
    return max(gains.values()) <= GAIN


if __name__ == "__main__":
    passed = asyncio.run(forge())
    print("PASS: no cheat gained" if passed else "FAIL")
    sys.exit(0 if passed else 1)
