"""The best kernel of each op against each of its baselines and the card's ceiling.

    python benchmarks/measure_ops.py [--op NAME]... [--kernel FILE] [--dtype NAME]... [-c KEY=VALUE]...

Judges and measures, as `bench` does, the kernel of each op's last recorded reply (or FILE), by one judge a GPU. Prints
a table an op with the geometric mean over each baseline, one of all ops and, last, PASS or FAIL: PASS when for every op
the geometric mean over the fastest baselines is above 1 with no shape slower beyond the margin, and the kernel reaches
92 % of the copy ceiling where more than 100 MB move. The judges' logs go to stderr when something fails. Needs a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from orchestrator import bench, config, ops, reply, resources
from orchestrator.bench import Benched
from orchestrator.config import Settings
from orchestrator.executors import Executor, pool
from orchestrator.ops import Op
from orchestrator.records import Measurement
from orchestrator.terminal import Terminal
from orchestrator.verifying import KernelFile

ROOT = resources.shipped("configs") / "ops"


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


def row(name: str, result: Benched | None, settings: Settings) -> list[str]:
    """An op in the last table."""
    if result is None:
        return [name, "no recorded kernel", *[""] * 5]
    found, verdict = result.measurement, result.verdict
    if found is None or verdict is None:
        said = result.report if result.measured is None else result.measured
        return [name, f"{said.status}: {said.message}"[:80], *[""] * 5]
    return [
        *(name, f"{found.speedup_low:.3f} to {found.speedup_high:.3f}", found.baseline),
        *(f"{found.slowest_speedup:.3f}", found.slowest_shape, f"{found.roofline_share:.0%}"),
        f"{verdict.decision}{'' if good(found, settings) else ', not what is aimed for'}",
    ]


async def every(options: argparse.Namespace, settings: Settings) -> dict[str, Benched | None]:
    """All ops, each printed whole as soon as it is there."""
    with tempfile.TemporaryDirectory() as place:
        judges = pool.local(None, "gpu", Path(place))

        async def one(name: str) -> Benched | None:
            op = ops.load(name, ROOT)
            kernel = kernel_of(op, options.kernel)
            if kernel is None:
                return None
            told = io.StringIO()
            result = await measured(op, kernel, judges, settings, options.dtype, Console(file=told, width=200))
            print(f"{told.getvalue()}\n# {op.spec.title}: {result.file}\n\n{bench.to_text(result)}\n", flush=True)
            if result.measured is not None:
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


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append")
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--dtype", action="append", default=[])
    parser.add_argument("-c", dest="override", action="append", default=[])
    options = parser.parse_args()
    settings = config.load(overrides=tuple(options.override))
    found = asyncio.run(every(options, settings))
    heads = ("op", "speedup over the fastest baseline (95 %)", "most often", "slowest", "at", "of the ceiling", "")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, result in found.items():
        print(f"| {' | '.join(row(name, result, settings))} |")
    return all(good(result.measurement if result else None, settings) for result in found.values())


if __name__ == "__main__":
    done = main()
    print("PASS: faster than the best baseline everywhere, and at the ceiling" if done else "FAIL")
    sys.exit(0 if done else 1)
