"""How many rounds the recorded replies of each op took until one passed.

    python benchmarks/recorded_rounds.py [--device cpu] [--judges 1]

Runs `--ops all --agent recorded` as a person would, in workspaces of its own, and prints a Markdown table: op, model,
rounds until the first kernel that is accepted, the status of each reply of the stage `correct`. Ops without recorded
replies are named below it. Prints PASS when every op that has replies got a kernel, FAIL otherwise.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from orchestrator import ops, resources
from orchestrator.agents.recorded import INDEX
from orchestrator.records import Run, from_json

ROOT = resources.shipped("configs") / "ops"
FIRST = "correct"


def replayed(workspaces: Path, arguments: argparse.Namespace) -> str:
    """The batch, carried out; what it printed."""
    command = ["--ops", "all", "--agent", "recorded", "--quick", "--quiet", "--device", arguments.device]
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *command, "--judges", str(arguments.judges)]
        + ["--workspaces", str(workspaces)],
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"the batch failed: {done.stderr[-2000:]}")
    return done.stdout.replace(f"{ROOT.parent.parent}/", "")


def row(run: Run) -> tuple[str, bool]:
    """One op as a line of the table, and whether it got a kernel."""
    tried = [attempt for attempt in run.attempts if attempt.stage == FIRST]
    accepted = next((number for number, attempt in enumerate(tried, 1) if attempt.report.accepted), None)
    told = ", ".join(str(attempt.status) for attempt in tried)
    model = tried[0].model if tried else ""
    return f"| {run.op} | {model} | {accepted or 'none passed'} | {told} |", accepted is not None


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", choices=["auto", "gpu", "cpu"])
    parser.add_argument("--judges", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        printed = replayed(Path(name), arguments)
        runs = [from_json(Run, path.read_bytes()) for path in sorted(Path(name).glob("runs/*/run.json"))]
    rows = [row(run) for run in sorted(runs, key=lambda run: run.op) if run.attempts]
    versions = ", ".join(f"{key} {value}" for key, value in runs[0].attempts[0].report.versions.items())
    recorded = {op for op in ops.names(ROOT) if (ROOT / op / "recorded" / INDEX).is_file()}
    print(f"Judged on {runs[0].attempts[0].report.device}; {versions}; the quick subset.\n")
    print("| op | model | rounds to the first accepted kernel | status of each reply |\n|---|---|---|---|")
    print("\n".join(line for line, _ in rows))
    print(f"\nWithout recorded replies: {', '.join(sorted(set(ops.names(ROOT)) - recorded)) or 'none'}.\n")
    print(f"```\n{printed.rstrip()}\n```\n")
    return len(rows) == len(recorded) and all(passed for _, passed in rows)


if __name__ == "__main__":
    passed = main()
    print("PASS: every op with recorded replies got a kernel" if passed else "FAIL")
    sys.exit(0 if passed else 1)
