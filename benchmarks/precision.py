"""How precise honest kernels are, in the units of LOW_PRECISION: what an op's bound is chosen from.

    python benchmarks/precision.py FILE... --op NAME [--device auto] [--quick]

Judges each file with all checks and prints, for each dtype, the largest RMS error against float64 over the cases, in
units of the float32 reference's own error (at least one unit in the last place). The op's bound is printed beside it.
Ends with PASS when every file passed, which means that all lie within the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from orchestrator import config, ops, resources
from orchestrator.attempt import run_kernel
from orchestrator.executors.local import LocalExecutor
from orchestrator.records import Report
from orchestrator.verifying import rendering


async def judged(files: list[Path], op_name: str, device: str, quick: bool | None) -> list[Report]:
    """The reports, printed as they come."""
    op = ops.load(op_name, resources.shipped("configs") / "ops")
    settings = config.load().judge.model_copy(update={"quick": quick})
    reports = []
    with tempfile.TemporaryDirectory() as place:
        executor = LocalExecutor(device, Path(place) / "judge.log")
        judging = await executor.start()
        print(f"{judging.device}; {', '.join(f'{k} {v}' for k, v in judging.versions.items())}")
        print(f"{op.name}: the bound is {op.spec.precision:g}")
        for number, file in enumerate(files):
            folder = Path(place) / str(number)
            folder.mkdir()
            reports.append(await run_kernel(file.read_bytes(), op, rendering(op), executor, settings, folder))
            print(f"  {file.stem:<28} {line(reports[-1])}", flush=True)
        await executor.close()
    return reports


def line(report: Report) -> str:
    """The worst of each dtype, or why there is none."""
    if not report.passed:
        return f"{report.status}: {report.message}"[:160]
    worst: dict[str, float] = {}
    for case in report.cases:
        worst[case.dtype] = max(worst.get(case.dtype, 0.0), case.precision or 0.0)
    return ", ".join(f"{dtype} {ratio:.2f}" for dtype, ratio in worst.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--op", required=True)
    parser.add_argument("--device", default="auto", choices=["auto", "gpu", "cpu"])
    parser.add_argument("--quick", action="store_true", default=None)
    options = parser.parse_args()
    passed = all(one.passed for one in asyncio.run(judged(options.files, options.op, options.device, options.quick)))
    print("PASS" if passed else "FAIL: a file did not pass")
    sys.exit(0 if passed else 1)
