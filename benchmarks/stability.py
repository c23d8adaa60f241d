"""The same comparison, decided again and again: by our measurement, and by plain do_bench.

    python benchmarks/stability.py [--times 20] [--keep FILE]
    python benchmarks/stability.py --of FILE...

Compares the recorded rmsnorm kernel with torch.compile of the reference at the first four of the op's shapes, each time
with new processes, and decides at each shape whether it is faster or slower by more than 2 %. Of ours all of the
interval must be, as where a run is decided; do_bench gives a ratio alone. Prints the ratios' spread and how many
decisions differ from the commonest, by both methods, and last PASS or FAIL: PASS when none of ours differs and every
ratio of ours lies within 1.5 % of its median. `--keep` adds every round's times to
a file. With `--of` nothing is compared: what earlier outputs say is taken together, or what is made today of the rounds
that such files hold. How many intervals are without their shape's median says whether they are as wide as they should
be: one in a hundred. Needs a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator import config, ops, reply, resources, weigh
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge.timing.statistics import Interval, Rounds, apart, median, speedup
from orchestrator.measured import AUTOTUNED, COMPILED, PICKED, REFERENCE, Measured
from orchestrator.measuring import Rivals, job_of
from orchestrator.ops import Op
from orchestrator.tree import lay_out

SHAPES = 4  # the first of the op's
MARGIN, SPREAD = 0.02, 0.015
OURS, THEIRS = "ours", "do_bench"  # begin a line that says a ratio

DO_BENCH = """
import sys, torch
from rmsnorm_triton import rmsnorm_triton
from ref import rmsnorm_ref
from triton.testing import do_bench
from test_correctness import Case, make_inputs
times, shapes = int(sys.argv[1]), [tuple(map(int, text.split("x"))) for text in sys.argv[2:]]
for M, N in shapes:
    inputs = make_inputs(Case({"M": M, "N": N}, "bfloat16"), "cuda", 0)
    torch.compiler.reset()
    compiled = torch.compile(rmsnorm_ref, dynamic=False)
    for _ in range(times):
        mine, theirs = (do_bench(lambda: f(**inputs), return_mode="median") for f in (rmsnorm_triton, compiled))
        print(f"do_bench {M}x{N} {theirs / mine:.4f}", flush=True)
"""


def shapes(op: Op) -> tuple[tuple[int, ...], ...]:
    """Those that are compared."""
    return op.spec.bench.shapes[:SHAPES]


def decision(one: Interval) -> str:
    """What is decided by a ratio of which so much is known."""
    return "faster" if one.low >= 1 + MARGIN else "slower" if one.high < 1 - MARGIN else "parity"


def spread(ratios: list[float]) -> float:
    """The largest distance from the median, as a fraction of it."""
    middle = median(ratios)
    return max(abs(ratio / middle - 1) for ratio in ratios)


def report(method: str, found: dict[str, list[Interval]]) -> tuple[int, float]:
    """Print one method's figures; returns how many decisions differ, and the largest spread."""
    differing, widest = 0, 0.0
    for shape, intervals in found.items():
        counted = Counter(map(decision, intervals)).most_common()
        said = ", ".join(f"{count} {what}" for what, count in counted)
        ratios = [one.middle for one in intervals]
        apart = f"{min(ratios):.3f} to {max(ratios):.3f}, median {median(ratios):.3f}, within {spread(ratios):.2%}"
        without = sum(not one.low <= median(ratios) <= one.high for one in intervals)
        beside = f"; {without} intervals without the median" if method == OURS else ""
        print(f"{method:9} {shape:>11}: {apart}; {said}{beside}")
        differing += len(intervals) - counted[0][1]
        widest = max(widest, spread(ratios))
    return differing, widest


def kept(found: Measured) -> str:
    """Every round's times of one comparison, as JSON on a line."""
    lines = {}
    for shape in found.shapes:
        (compiled,) = [one for one in shape.baselines if one.name == COMPILED]
        each = {"candidate": shape.candidate.latencies_us, "baseline": compiled.latencies_us}
        times = {name: [round(us, 3) for us in latencies] for name, latencies in each.items()}
        lines[shape.name.split()[0]] = {"sittings": shape.sittings, **times}
    return json.dumps(lines)


def made_of(line: str) -> dict[str, Interval]:
    """The ratio at each shape of such a line, as it is reckoned today."""
    rounds = {
        shape: Rounds(tuple(one["candidate"]), (tuple(one["baseline"]),), one["sittings"])
        for shape, one in json.loads(line).items()
    }
    processes = apart(list(rounds.values()))
    return {shape: speedup(times, processes) for shape, times in rounds.items()}


async def by_us(op: Op, kernel: bytes, root: Path, times: int, say: Callable[[str], None], keep: Path | None) -> None:
    """The speedup over torch.compile at each shape, that often; the records into `keep`, if it is given."""
    executor = LocalExecutor("gpu", root / "judge.log")
    try:
        judging = await executor.start()
        say(f"{judging.device}; {', '.join(f'{name} {version}' for name, version in judging.versions.items())}")
        for number in range(times):
            begun, folder = time.perf_counter(), root / f"measure-{number}"
            lay_out({**op.workspace_files(), op.spec.kernel_name: kernel}, folder)
            job = job_of(op, config.load(), folder, Rivals())
            job = replace(
                job, curve=(), shapes=shapes(op), dtypes=("bfloat16",), without=(AUTOTUNED, REFERENCE, "liger")
            )
            found = await executor.measure(job, lambda text: None)
            if keep is not None:
                with keep.open("a") as file:
                    file.write(kept(found) + "\n")
            for row in weigh.rows(found):
                one = row.speedups[COMPILED]
                shape, ratio = row.name.split()[0], f"{one.middle:.4f} ({one.low:.4f} to {one.high:.4f})"
                picked = "; ".join(_picked(found, shape))
                say(f"{OURS} {shape} {ratio} of {row.latency_us:.2f} us{picked and f', against {picked}'}")
            say(f"  {number + 1}: noise {weigh.noise(found):.4f} ({time.perf_counter() - begun:.1f} s)")
    finally:
        await executor.close()


def _picked(found: Measured, shape: str) -> list[str]:
    """The configurations that torch.compile took, of several, in one sitting or another."""
    lines = found.generated.get(f"{COMPILED}-{shape}-bfloat16.py", "").splitlines()
    return [line.removeprefix(PICKED).strip() for line in lines if line.startswith(PICKED)]


def by_do_bench(op: Op, kernel: bytes, root: Path, times: int, say: Callable[[str], None]) -> None:
    """The same by triton.testing.do_bench, in one process."""
    folder = root / "do-bench"
    lay_out({**op.workspace_files(), op.spec.kernel_name: kernel}, folder)
    command = [sys.executable, "-c", DO_BENCH, str(times), *(f"{m}x{n}" for m, n in shapes(op))]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=500, check=True)
    for line in done.stdout.splitlines():
        say(line)


def said(lines: Iterable[str]) -> dict[str, dict[str, list[Interval]]]:
    """The ratios by method and shape, of what either printed."""
    found: dict[str, dict[str, list[Interval]]] = {THEIRS: {}, OURS: {}}
    for line in lines:
        if line.startswith("{"):
            for shape, interval in made_of(line).items():
                found[OURS].setdefault(shape, []).append(interval)
        elif one := re.match(rf"({THEIRS}|{OURS}) (\d+x\d+) ([\d.]+)(?: \(([\d.]+) to ([\d.]+)\))?", line):
            method, shape, middle, low, high = one.groups()
            interval = Interval(float(low or middle), float(middle), float(high or middle))
            found[method].setdefault(shape, []).append(interval)
    return found


def compared(times: int, keep: Path | None) -> list[str]:
    """What either method says, that often; printed as it comes."""
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    text = (op.recorded / "correct-1.md").read_text()
    kernel = reply.files(text, op.spec.kernel_name, op.spec.function)[op.spec.kernel_name]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        try:
            asyncio.run(by_us(op, kernel, root, times, say, keep))
        except BaseException:
            log = root / "judge.log"
            print(log.read_text(errors="replace")[-8000:] if log.is_file() else "", file=sys.stderr)
            raise
        by_do_bench(op, kernel, root, times, say)
    return lines


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--of", type=Path, nargs="+")
    options = parser.parse_args()
    earlier = [line for file in options.of or () for line in file.read_text().splitlines()]
    every = said(earlier or compared(options.times, options.keep))
    for method, found in [(method, found) for method, found in every.items() if found]:
        differing, widest = report(method, found)
        decided = sum(map(len, found.values()))
        print(f"{method}: {differing} of {decided} decisions differ, ratios within {widest:.2%} of their median")
    return decided > 0 and differing == 0 and widest <= SPREAD


if __name__ == "__main__":
    passed = main()
    print("PASS: the same decision every time" if passed else "FAIL")
    sys.exit(0 if passed else 1)
