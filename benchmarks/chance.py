"""Is an honest kernel ever refused by chance? Every recorded kernel on its op's cases, with many seeds.

    python benchmarks/chance.py [--op NAME]... [--seeds 20] [--first 0] [--approximate]

Values and the drawn sizes are chance, and a bound that an honest kernel passes with one seed may refuse it with
another. Runs the op's own test file on the kernel of the last recorded reply, in one bare process an op: quick cases
without a GPU, all with one. Neither judge nor checks: this is about tolerances and precision alone. Prints how near
each op came to its bounds, every case beyond one and, last, PASS or FAIL: PASS when there is none.

`--approximate`, without a GPU: float32 exponentials, quotients, roots and logarithms of kernels are off by as much as
PTX allows its approximate instructions (ex2, div.full, sqrt, rsqrt, lg2), which Triton uses, and results too small to
be normal are 0. A card is nearer to the truth than that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator import ops, reply, resources
from orchestrator.ops import Op

ROOT = resources.shipped("configs") / "ops"

APPROXIMATE = """
import numpy as np
from triton.runtime import interpreter as triton_interpreter
draw, builder = np.random.default_rng(0), triton_interpreter.InterpreterBuilder

def off(exact, by):
    with np.errstate(all="ignore"):
        found = (exact.astype(np.float64) * (1 + draw.uniform(-by, by, exact.shape))).astype(np.float32)
    found = np.where(np.abs(found) < np.finfo(np.float32).tiny, np.float32(0), found)
    return np.where(np.isfinite(exact) & (exact != 1), found, exact)  # powers of 0 and roots of 1 are exact

def approximately(name, by, compute=None):
    usual = getattr(builder, name)
    def approximate(self, *handles):
        if handles[0].data.dtype != np.float32:
            return usual(self, *handles)
        with np.errstate(all="ignore"):
            exact = compute(*(one.data for one in handles)) if compute else usual(self, *handles).data
        return triton_interpreter.TensorHandle(off(exact, by), handles[0].dtype.scalar)
    setattr(builder, name, approximate)

approximately("create_exp", 2**-22.5, lambda x: np.exp2((x * np.float32(np.log2(np.e))).astype(float)).astype(x.dtype))
for names, by in (("exp2", 2**-22.5), ("fdiv log log2", 2**-22), ("sqrt", 2**-23), ("rsqrt", 2**-22.4)):
    for name in names.split():
        approximately(f"create_{name}", by)
"""

BARE = """
import json, os, sys
import torch
on_gpu = torch.cuda.is_available()
if not on_gpu:
    os.environ["TRITON_INTERPRET"] = "1"
    from orchestrator.judge import interpreter
    interpreter.repair(), interpreter.stand_in()
if sys.argv[3]:
    exec(sys.argv[3])
sys.path.insert(0, "")
import test_correctness as test
first, seeds = int(sys.argv[1]), int(sys.argv[2])
device, quick = ("cuda", False) if on_gpu else ("cpu", True)
calls, nearest, precisest, beyond = 0, 0.0, 0.0, []
for seed in range(first, first + seeds):
    every = [*test.cases(quick), *test.telling(), *test.holdouts(seed, quick)]
    for number, case in enumerate(every):
        results = test.checked(case, device, seed * 1009 + number)
        worst, error = max(found.worst for found, _ in results), max(error for _, error in results)
        calls, nearest, precisest = calls + 1, max(nearest, worst), max(precisest, error)
        if worst > 1 or error > test.PRECISION:
            at = f"{case.name}, seed {seed * 1009 + number}"
            beyond.append(f"{at}: {worst:.3g} of the tolerance, precision {error:.3g}")
where = torch.cuda.get_device_name() if on_gpu else "Triton's interpreter"
import triton
print(json.dumps({
    "calls": calls, "nearest": nearest, "precisest": precisest, "bound": test.PRECISION, "beyond": beyond,
    "where": f"{where}; torch {torch.__version__}, triton {triton.__version__}",
}))
"""


@dataclass(frozen=True)
class Played:
    """What the bare process says of an op."""

    calls: int
    nearest: float  # the largest share of a tolerance
    precisest: float  # the largest error, in units of the reference's own
    bound: float  # of that
    beyond: list[str]
    where: str


def played(op: Op, first: int, seeds: int, *, approximate: bool) -> Played:
    """The recorded kernel on the op's cases, with each of the seeds."""
    recorded = sorted(op.recorded.glob("*.md"), key=lambda path: (path.stem.split("-")[0] != "correct", path.name))[-1]
    kernel = reply.files(recorded.read_text(), op.spec.kernel_name, op.spec.function)[op.spec.kernel_name]
    with tempfile.TemporaryDirectory() as folder:
        for name, data in {**op.workspace_files(), op.spec.kernel_name: kernel}.items():
            (Path(folder) / name).write_bytes(data)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", BARE, str(first), str(seeds), APPROXIMATE if approximate else ""]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{op.name}: {done.stderr[-2000:]}")
    return Played(**json.loads(done.stdout.splitlines()[-1]))


def main() -> bool:
    """Play every op, print, say whether none was refused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--approximate", action="store_true")
    options = parser.parse_args()
    how = ", as approximate as PTX allows" if options.approximate else ""
    print(f"seeds {options.first} to {options.first + options.seeds - 1}{how}")
    right = True
    for name in options.op or ops.names(ROOT):
        op, begun = ops.load(name, ROOT), time.monotonic()
        if not op.recorded.is_dir():
            print(f"{name:22} no recorded kernel", flush=True)
            continue
        one = played(op, options.first, options.seeds, approximate=options.approximate)
        near = f"nearest {one.nearest:.3f} of the tolerance, {one.precisest:.2f} of {one.bound:g} in precision"
        took = f"{time.monotonic() - begun:.0f} s; {one.where}"
        print("\n  beyond: ".join([f"{name:22} {one.calls:>6} calls, {near} ({took})", *one.beyond]), flush=True)
        right &= not one.beyond
    return right


if __name__ == "__main__":
    passed = main()
    print("PASS: no honest kernel is refused by its values" if passed else "FAIL")
    sys.exit(0 if passed else 1)
