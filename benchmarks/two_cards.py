"""Two GPUs with a judge on each: how much more they do than one, and whether measurements disturb each other.

    python benchmarks/two_cards.py [--op NAME]... [-c KEY=VALUE]...

Judges and measures the recorded kernels of a few ops in bfloat16 through the pool that a batch uses: by one judge on
the first GPU, by one on each of two, and once more by the one. Prints how long each took and the kernel's time at every
shape: alone, beside the other GPU's measurements, alone again. The kernel's own time is compared and not a speedup,
because torch.compile picks its configuration anew each time. Last PASS or FAIL: PASS when two GPUs do at least 1.7
times as much in the same time and, of the shapes that are not bound by their launch, the median difference beside
exceeds that of the repetition by at most 1 %. Needs two GPUs.
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
from orchestrator.judge.timing.statistics import median

OPS = ("swiglu", "log_softmax")
MORE, BESIDE = 1.7, 0.01


async def carried_out(cards: tuple[str, ...], names: list[str], settings: Settings) -> tuple[float, list[Benched]]:
    """The seconds from the first job to the last answer, and what came of each op. Each judge is there before."""
    with tempfile.TemporaryDirectory() as place:
        judges = [LocalExecutor("gpu", Path(place) / f"judge-{card}.log", card, len(cards)) for card in cards]
        pool = Pool([Slot(judge, card) for judge, card in zip(judges, cards, strict=True)])
        try:
            for judge in judges:
                await judge.start()
            begun, waiting = time.monotonic(), []
            for name in names:
                op = ops.load(name, ROOT)
                kernel = kernel_of(op, None)
                assert kernel is not None, f"{name} has a recorded reply"
                waiting.append(measured(op, kernel, pool, settings, ["bfloat16"], Console(quiet=True)))
            found = await asyncio.gather(*waiting)
            return time.monotonic() - begun, found
        finally:
            await pool.close()


def differences(alone: Benched, beside: Benched, again: Benched) -> list[tuple[float, float]]:
    """Of the kernel's time to when it was alone first, as fractions: beside, and again. Each shape is printed."""
    runs = [run.measured for run in (alone, beside, again) if run.measured is not None]
    if len(runs) < 3:
        raise SystemExit(f"not measured: {', '.join(one.report.message for one in (alone, beside, again))}")
    found = []
    for one, other, third in zip(*map(weigh.rows, runs), strict=True):
        pair = other.latency_us / one.latency_us - 1, third.latency_us / one.latency_us - 1
        counts = not (one.launch_bound or other.launch_bound or third.launch_bound)
        print(
            f"  {one.name}: {one.latency_us:.2f} us; beside the other {other.latency_us:.2f} ({pair[0]:+.1%}); again "
            f"{third.latency_us:.2f} ({pair[1]:+.1%}){'' if counts else ', launch-bound'}"
        )
        found += [pair] if counts else []
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
    took_again, again = asyncio.run(carried_out(cards[:1], names, settings))
    print(f"by the one again: {took_again:.1f} s", flush=True)
    pairs = []
    for name, *runs in zip(names, alone, beside, again, strict=True):
        print(name)
        pairs += differences(*runs)
    apart, repeated = (median([abs(one) for one in those]) for those in zip(*pairs, strict=True))
    print(f"{len(pairs)} shapes: beside the other {apart:.1%} apart, repeated {repeated:.1%} (medians)")
    return took / took_both >= MORE and apart <= repeated + BESIDE


if __name__ == "__main__":
    passed = main()
    print("PASS: two GPUs, neither of which disturbs the other" if passed else "FAIL")
    sys.exit(0 if passed else 1)
