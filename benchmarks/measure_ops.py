"""The best kernel of each op against each of its baselines and the card's ceiling.

    python benchmarks/measure_ops.py [--op NAME]... [--kernel FILE] [--dtype NAME]... [-c KEY=VALUE]...

Judges and measures, as `bench` does, the kernel of each op's last recorded reply (or FILE). Prints one table an op
with the geometric mean over each baseline and, last, PASS or FAIL: PASS when for every op the geometric mean over the
fastest baselines is above 1 with no shape slower beyond the margin, and the kernel reaches 92 % of the copy ceiling
where more than 100 MB move. The judge's log goes to stderr when something fails. Needs a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from orchestrator import bench, config, ops, reply, resources
from orchestrator.bench import Benched
from orchestrator.config import Settings
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.terminal import Terminal
from orchestrator.verifying import KernelFile

ROOT = resources.shipped("configs") / "ops"


def kernel_of(op: Op, file: Path | None) -> KernelFile:
    """The file, or what the last recorded reply holds."""
    if file is not None:
        return KernelFile(str(file), file.read_bytes())
    last = sorted(op.recorded.glob("*.md"), key=lambda path: (path.stem.split("-")[0] != "correct", path.name))[-1]
    found = reply.files(last.read_text(), op.spec.kernel_name, op.spec.function)
    return KernelFile(last.name, found[op.spec.kernel_name])


async def measured(op: Op, kernel: KernelFile, settings: Settings, dtypes: tuple[str, ...]) -> Benched:
    """One op."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "judge.log"
        executor = LocalExecutor("gpu", log)
        try:
            result = await bench.bench(
                kernel, op, executor, settings, Terminal(Console(width=200)), Path(name) / "bench", dtypes
            )
        except BaseException:
            print(log.read_text(errors="replace")[-8000:] if log.is_file() else "", file=sys.stderr)
            raise
        finally:
            await executor.close()
    return result


def good(result: Benched, settings: Settings) -> bool:
    """Whether it is what is aimed for."""
    found = result.measurement
    if found is None:
        return False
    margin = max(found.noise, settings.decision.margin_floor)
    return found.speedup_low > 1 and found.slowest_speedup >= 1 - margin and found.roofline_share >= 0.92


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append")
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--dtype", action="append", default=[])
    parser.add_argument("-c", dest="override", action="append", default=[])
    options = parser.parse_args()
    settings, passed = config.load(overrides=tuple(options.override)), True
    for name in options.op or ops.names(ROOT):
        op = ops.load(name, ROOT)
        result = asyncio.run(measured(op, kernel_of(op, options.kernel), settings, tuple(options.dtype)))
        print(f"\n# {op.spec.title}: {result.file}\n\n{bench.to_text(result)}\n", flush=True)
        if result.measured is not None:
            print(f"measured in {result.measured.seconds:.0f} s; {result.measurement}", flush=True)
        passed &= good(result, settings)
    return passed


if __name__ == "__main__":
    done = main()
    print("PASS: faster than the best baseline everywhere, and at the ceiling" if done else "FAIL")
    sys.exit(0 if done else 1)
