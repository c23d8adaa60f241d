"""How long a verdict takes, from a model's reply to the report.

    python benchmarks/verdict_speed.py [--device auto]

Judges the recorded rmsnorm kernel as the loop does (tree, guard, policy, export, sandboxed sweep, all checks), by one
judge process that is started before. Then runs the same cases in one bare process, without judge, checks or reference,
for what no judge can save. Prints the parts of each verdict and, last, PASS or FAIL. The bounds:

  on a GPU, the full sweep   a verdict on a file never seen before 6 s, on one that passed before 2.5 s
  without one, the quick     2 s beyond the bare process and compiling; compiling 5 s, and none the second time
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator import config, ops, reply, resources
from orchestrator.attempt import judge_reply
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Judging, Reply, Report, Usage
from orchestrator.workspace import Workspace

COLD_S, WARM_S, BEYOND_S, COMPILE_S = 6.0, 2.5, 2.0, 5.0


@dataclass(frozen=True)
class Verdict:
    """One verdict and how long it took in all."""

    seconds: float
    report: Report

    def show(self, what: str) -> None:
        """Print it with its parts."""
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self.report.seconds.items())
        print(f"{what}: {self.seconds:.2f} s ({self.report.status}, {self.report.message})\n    {parts}")
        slowest = sorted(self.report.cases, key=lambda case: -case.seconds)[:3]
        print("    slowest cases: " + ", ".join(f"{case.name} {case.seconds:.2f} s" for case in slowest))


async def verdicts(device: str, op: Op, text: str) -> tuple[Judging, list[Verdict]]:
    """Three verdicts: on new bytes, on the same again, on new bytes again."""
    new, other = (text.replace("import torch\n", f"# {secrets.token_hex(8)}\nimport torch\n", 1) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        executor = LocalExecutor(device, root / "judge.log")
        begun = time.perf_counter()
        judging = await executor.start()
        print(f"{judging.device}; {', '.join(f'{k} {v}' for k, v in judging.versions.items())}")
        print(f"judge started in {time.perf_counter() - begun:.2f} s")
        branch = Workspace.open(root, op.name).start_run(op.workspace_files(), "speed")
        done = []
        for number, answer in enumerate((new, new, other), 1):
            begun = time.perf_counter()
            asked = Reply(answer, "recorded", Usage(latency_s=0))
            judged = await judge_reply(asked, op, branch, executor, config.load().judge, root / f"attempt-{number}")
            done.append(Verdict(time.perf_counter() - begun, judged.report))
            done[-1].show(f"verdict {number}, {'the same file again' if number == 2 else 'a new file'}")
        await executor.close()
    return judging, done


def bare(op: Op, kernel: bytes, report: Report) -> list[float]:
    """Seconds of the report's calls in a process of their own, twice over: cold and warm."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in {**op.workspace_files(), op.spec.kernel_name: kernel}.items():
            (Path(folder) / name).write_bytes(data)
        environment = os.environ | {"TRITON_CACHE_DIR": f"{folder}/cache", "PYTHONPATH": os.pathsep.join(sys.path)}
        if report.interpreted:
            environment["TRITON_INTERPRET"] = "1"
        done = subprocess.run(
            [sys.executable, "-c", _BARE, str(report.seed), "quick" if report.interpreted else ""],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return [float(seconds) for seconds in json.loads(done.stdout.splitlines()[-1])]


_BARE = """
import json, os, sys, time
import torch
if os.environ.get("TRITON_INTERPRET") == "1":
    from orchestrator.judge import interpreter
    interpreter.repair(), interpreter.stand_in()
sys.path.insert(0, "")
import test_correctness as test
from orchestrator import source
from pathlib import Path
KERNEL = next(path.name for path in Path().glob("*_triton.py"))
seed, quick = int(sys.argv[1]), bool(sys.argv[2])
device = "cpu" if quick else "cuda"
numbers = source.integers(source.read(Path(test.__file__).with_name(KERNEL).read_bytes(), KERNEL))
cases = [*test.cases(quick), *test.telling(), *test.holdouts(seed, quick), *test.named(seed, *numbers, quick)]
kernel, took = next(v for k, v in vars(test).items() if k.endswith("_triton") and callable(v)), []
for _ in range(2):
    took.append(0.0)
    for number, case in enumerate(cases):
        inputs = test.make_inputs(case, device, seed + number)
        begun = time.perf_counter()
        kernel(**inputs, **case.parameters)
        if not quick:
            torch.cuda.synchronize()
        took[-1] += time.perf_counter() - begun
print(json.dumps(took))
"""


def within(judging: Judging, done: list[Verdict], calls_s: list[float]) -> list[str]:
    """The bounds that were missed, in words."""
    cold, warm, again = done
    missed = [f"a verdict was {one.report.status}" for one in done if not one.report.passed]
    if not judging.interpreted:
        missed += [f"{one.seconds:.2f} s cold, bound {COLD_S:g} s" for one in (cold, again) if one.seconds > COLD_S]
        return missed + ([f"{warm.seconds:.2f} s warm, bound {WARM_S:g} s"] if warm.seconds > WARM_S else [])
    for one in done:
        compiling = one.report.seconds.get("compile", 0.0)
        beyond = one.seconds - compiling - min(calls_s)
        print(f"    beyond the interpreter's own {min(calls_s):.2f} s: {beyond:.2f} s; compiling {compiling:.2f} s")
        missed += [f"{beyond:.2f} s beyond the interpreter, bound {BEYOND_S:g} s"] if beyond > BEYOND_S else []
        missed += [f"{compiling:.2f} s of compiling, bound {COMPILE_S:g} s"] if compiling > COMPILE_S else []
    return missed


def main() -> int:
    """Measure, print, say PASS or FAIL."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="auto", choices=["auto", "gpu", "cpu"])
    options = parser.parse_args()
    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    text = (op.recorded / "correct-1.md").read_text()
    kernel = reply.files(text, op.spec.kernel_name, op.spec.function)[op.spec.kernel_name]
    judging, done = asyncio.run(verdicts(options.device, op, text))
    calls_s = bare(op, kernel, done[0].report)
    print(f"one bare process, {len(done[0].report.cases)} calls: {calls_s[0]:.2f} s cold, {calls_s[1]:.2f} s again")
    missed = within(judging, done, calls_s)
    print("PASS: every verdict passed, within the bounds" if not missed else f"FAIL: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
