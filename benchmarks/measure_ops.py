"""The best kernel of each op against each of its baselines and the card's ceiling.

    python benchmarks/measure_ops.py [--op NAME]... [--kernel FILE] [--dtype NAME]... [--within S] [--keep FOLDER]
                                     [-c KEY=VALUE]...
    python benchmarks/measure_ops.py --of FILE...

Judges and measures, as `bench` does, the kernel of each op's last recorded reply (or FILE), by one judge a GPU. Prints
a table an op with the geometric mean over each baseline, one of all ops and, last, PASS or FAIL: PASS when for every op
the geometric mean over the fastest baselines is above 1 with no shape slower beyond the margin, and the kernel reaches
92 % of the copy ceiling where more than 100 MB move. The judges' logs go to stderr when something fails. Needs a GPU.

No op is begun after `--within` seconds. `--keep` leaves each op's record, every round's time in it. With `--of` nothing
is measured: what earlier outputs say is printed as one table, each op as it was measured last, in the files' order.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import math
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from orchestrator import bench, config, ops, reply, resources
from orchestrator.bench import Benched
from orchestrator.config import Settings
from orchestrator.errors import JudgeError
from orchestrator.executors import Executor, pool
from orchestrator.judge.timing.statistics import CONFIDENCE
from orchestrator.ops import Op
from orchestrator.records import Measurement, to_json
from orchestrator.terminal import Terminal
from orchestrator.verifying import KernelFile

ROOT = resources.shipped("configs") / "ops"
AMISS = "not what is aimed for"
_FIELDS = ("baseline", "speedup_low", "speedup_high", "slowest_shape", "slowest_speedup", "roofline_share", "noise")
HEADS = ("op", "speedup over the fastest baseline, interval", "most often", "slowest", "at", "of the ceiling", "")


def kernel_of(op: Op, file: Path | None) -> KernelFile | None:
    """The file, or what the last recorded reply holds; None where there is neither."""
    if file is not None:
        return KernelFile(str(file), file.read_bytes())
    replies = sorted(op.recorded.glob("*.md"), key=lambda path: (path.stem.split("-")[0] != "correct", path.name))
    if not replies:
        return None
    found = reply.files(replies[-1].read_text(), op.spec.kernel_name, op.spec.function)
    return KernelFile(replies[-1].name, found[op.spec.kernel_name])


async def measured(
    op: Op, kernel: KernelFile, executor: Executor, settings: Settings, dtypes: list[str], console: Console
) -> Benched:
    """One op, with those of the dtypes that it is measured with."""
    fit = tuple(dtype for dtype in dtypes if dtype in op.spec.bench.dtypes)
    with tempfile.TemporaryDirectory() as name:
        return await bench.bench(kernel, op, executor, settings, Terminal(console), Path(name) / "bench", fit)


def good(found: Measurement | None, settings: Settings) -> bool:
    """Whether it is what is aimed for."""
    if found is None:
        return False
    margin = max(found.noise, settings.decision.margin_floor)
    return found.speedup_low > 1 and found.slowest_speedup >= 1 - margin and found.roofline_share >= 0.92


def row(name: str, result: Benched | str, settings: Settings) -> list[str]:
    """An op in the last table; a text says why it was not measured."""
    if isinstance(result, str):
        return [name, result, *[""] * 5]
    found, verdict = result.measurement, result.verdict
    if found is None or verdict is None:
        said = result.report if result.measured is None else result.measured
        return [name, f"{said.status}: {said.message}"[:80], *[""] * 5]
    return figures_of(name, found, verdict.decision, settings, CONFIDENCE)


def figures_of(name: str, found: Measurement, decision: str, settings: Settings, confidence: int) -> list[str]:
    """A measured op in the last table, with an interval of so many percent."""
    return [
        *(name, f"{found.speedup_low:.3f} to {found.speedup_high:.3f} ({confidence} %)", found.baseline),
        *(f"{found.slowest_speedup:.3f}", found.slowest_shape, f"{found.roofline_share:.0%}"),
        f"{decision}{'' if good(found, settings) else f', {AMISS}'}",
    ]


async def every(options: argparse.Namespace, settings: Settings) -> dict[str, Benched | str]:
    """All ops, each printed whole as soon as it is there."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        judges = pool.local(None, "gpu", Path(place))
        turns = asyncio.Semaphore(len(judges))

        async def one(name: str) -> Benched | str:
            op = ops.load(name, ROOT)
            kernel = kernel_of(op, options.kernel)
            if kernel is None:
                return "no recorded kernel"
            told = io.StringIO()
            async with turns:
                if time.monotonic() - begun > options.within:
                    return f"not begun within {options.within:g} s"
                try:
                    result = await measured(op, kernel, judges, settings, options.dtype, Console(file=told, width=200))
                except JudgeError as failed:
                    return f"not measured: {failed}"
            print(f"{told.getvalue()}\n# {op.spec.title}: {result.file}\n\n{bench.to_text(result)}\n", flush=True)
            if result.measured is not None:
                if options.keep is not None:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{name}.json").write_text(to_json(result.measured))
                print(f"measured in {result.measured.seconds:.0f} s; {result.measurement}", flush=True)
            return result

        names = options.op or ops.names(ROOT)
        try:
            return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
        except BaseException:
            for log in sorted(Path(place).glob("*.log")):
                print(log.read_text(errors="replace")[-8000:], file=sys.stderr)
            raise
        finally:
            await judges.close()


def rows_of(file: Path, settings: Settings) -> dict[str, list[str]]:
    """The ops whose figures are in an earlier output, which may have been cut, as rows of the last table."""
    titles = {ops.load(name, ROOT).spec.title: name for name in ops.names(ROOT)}
    rows, title, confidence = {}, "", CONFIDENCE
    for line in file.read_text().splitlines():
        if heading := re.fullmatch(r"# (.*): \S+", line):
            title = heading[1]
        elif interval := re.match(r"\| shape .*\((\d+) %\)", line):
            confidence = int(interval[1])
        elif said := re.match(r"As a challenger it would end as (\w+):", line):
            decision = said[1]
        elif figures := re.fullmatch(r"measured in \d+ s; Measurement\((.*)\)", line):
            given = dict(re.findall(r"(\w+)=('[^']*'|[\d.]+)", figures[1]))
            text = {name: value.strip("'") for name, value in given.items()}
            numbers = {name: float(value) for name, value in text.items() if value == given[name]}
            known = {name: numbers.get(name, text[name]) for name in given if name in _FIELDS}
            found = Measurement(**known, rungs_left=0)
            rows[titles[title]] = figures_of(titles[title], found, decision, settings, confidence)
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    lines = (f"| {' | '.join(cells)} |" for cells in (HEADS, *rows))
    return "\n".join([next(lines), f"|{'---|' * len(HEADS)}", *lines])


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append")
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--dtype", action="append", default=[])
    parser.add_argument("--within", type=float, default=math.inf)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--of", type=Path, nargs="+")
    parser.add_argument("-c", dest="override", action="append", default=[])
    options = parser.parse_args()
    settings = config.load(overrides=tuple(options.override))
    if options.of:
        earlier = {name: cells for file in options.of for name, cells in rows_of(file, settings).items()}
        print(table([earlier[name] for name in sorted(earlier)]))
        return not any(AMISS in cells[-1] for cells in earlier.values())
    found = asyncio.run(every(options, settings))
    print(table([row(name, result, settings) for name, result in found.items()]))
    return all(good(None if isinstance(one, str) else one.measurement, settings) for one in found.values())


if __name__ == "__main__":
    done = main()
    print("PASS: faster than the best baseline everywhere, and at the ceiling" if done else "FAIL")
    sys.exit(0 if done else 1)
