"""Two GPUs with a judge on each: how much more they do than one, and whether measurements disturb each other.

    python benchmarks/two_cards.py [--op NAME]... [-c KEY=VALUE]...

Judges and measures the recorded kernels of a few ops in bfloat16 through the pool that a batch uses, by one judge on
the first GPU and then by one on each of two. Prints how long both took and, for each shape, the speedup over the
fastest baseline when the other GPU was idle and when it was busy; last PASS or FAIL: PASS when two GPUs do at least 1.7
times as much in the same time and no speedup differs by more than 3 %, which is what two measurements on one GPU may
differ by (`stability.py`: 1.5 % either way). Needs two GPUs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from measure_ops import ROOT, kernel_of, measured
from rich.console import Console

from orchestrator import config, gpu, ops, weigh
from orchestrator.bench import Benched
from orchestrator.config import Settings
from orchestrator.executors.local import LocalExecutor
from orchestrator.executors.pool import Pool, Slot

OPS = ("softmax", "layernorm", "swiglu", "logsumexp")
MORE, DIFFERENCE = 1.7, 0.03


async def carried_out(cards: tuple[str, ...], names: list[str], settings: Settings) -> tuple[float, list[Benched]]:
    """The seconds from the first job to the last answer, and what came of each op. Each judge is there before."""
    with tempfile.TemporaryDirectory() as place:
        judges = [LocalExecutor("gpu", Path(place) / f"judge-{card}.log", card, len(cards)) for card in cards]
        pool = Pool([Slot(judge, card) for judge, card in zip(judges, cards, strict=True)])
        try:
            for judge in judges:
                await judge.start()
            quiet = Console(quiet=True)
            begun = time.monotonic()
            waiting = []
            for name in names:
                op = ops.load(name, ROOT)
                kernel = kernel_of(op, None)
                assert kernel is not None, f"{name} has a recorded reply"
                waiting.append(measured(op, kernel, pool, settings, ["bfloat16"], quiet))
            found = await asyncio.gather(*waiting)
            return time.monotonic() - begun, found
        finally:
            await pool.close()


def differences(alone: Benched, beside: Benched) -> list[float]:
    """Of each shape's speedup, in fractions; each is printed."""
    if alone.measured is None or beside.measured is None:
        raise SystemExit(f"not measured: {alone.report.message}; {beside.report.message}")
    found = []
    for one, other in zip(weigh.rows(alone.measured), weigh.rows(beside.measured), strict=True):
        found.append(other.speedup.middle / one.speedup.middle - 1)
        print(
            f"  {one.name}: {one.latency_us:.2f} us, {one.speedup.middle:.3f} times the speed of {one.best}; beside "
            f"the other: {other.latency_us:.2f} us, {other.speedup.middle:.3f} of {other.best} ({found[-1]:+.1%})"
        )
    return found


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append")
    parser.add_argument("-c", dest="override", action="append", default=[])
    options = parser.parse_args()
    settings, names, cards = config.load(overrides=tuple(options.override)), options.op or list(OPS), gpu.visible()
    if len(cards) < 2:
        raise SystemExit(f"{len(cards)} GPU to be seen here, and two are needed")
    took, alone = asyncio.run(carried_out(cards[:1], names, settings))
    said = alone[0].report
    print(f"{said.device}, twice; {', '.join(f'{name} {version}' for name, version in said.versions.items())}")
    print(f"{len(names)} ops judged and measured by one judge on one GPU: {took:.1f} s", flush=True)
    took_both, beside = asyncio.run(carried_out(cards[:2], names, settings))
    print(f"by one judge on each of two GPUs: {took_both:.1f} s, {took / took_both:.2f} times as much", flush=True)
    found = []
    for name, *pair in zip(names, alone, beside, strict=True):
        print(name)
        found += differences(*pair)
    widest = max(map(abs, found))
    print(f"{len(found)} speedups, at most {widest:.1%} apart")
    return took / took_both >= MORE and widest <= DIFFERENCE


if __name__ == "__main__":
    passed = main()
    print("PASS: two GPUs, neither of which disturbs the other" if passed else "FAIL")
    sys.exit(0 if passed else 1)
