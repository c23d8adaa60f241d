"""How many of a model's claims about kernels with known faults the judge confirms.

    python benchmarks/audit_claims.py prompts DIR      # write the prompt of each kernel of the set
    python benchmarks/audit_claims.py [--device cpu]   # put the recorded reviews to the judge

The set is benchmarks/audit-claims/set.yaml: wrong kernels and honest ones, shown without comments, without their names
and without what the audit's own rules find in them. A review is recorded in benchmarks/audit-claims/<kernel>/ as any
reply is: audit-1.md, unedited, and recorded.yaml, which says whose it is and of when. A kernel without one is named and
not counted. Prints a row a kernel and what it comes to; exit code 1 when nothing is recorded.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import hashlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from orchestrator import config, ops, resources
from orchestrator.agents.recorded import INDEX, RecordedAgent
from orchestrator.agents.render import render
from orchestrator.audit.claims import Outcome
from orchestrator.audit.review import Review, prompt, review
from orchestrator.executors.local import LocalExecutor

ROOT = Path(__file__).resolve().parent.parent
SET = ROOT / "benchmarks" / "audit-claims"
NEAR = 2  # lines between a claim and the line at fault


@dataclass(frozen=True)
class Known:
    """A kernel of the set. An honest one has no fault."""

    name: str
    file: str
    fault: str = ""
    at: str = ""

    @property
    def data(self) -> bytes:
        """What a model is shown of it."""
        tree = ast.parse((ROOT / self.file).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.unparse(tree).encode()

    @property
    def line(self) -> int:
        """The line at fault, 0 for an honest one."""
        lines = self.data.decode().splitlines()
        return next((number for number, line in enumerate(lines, 1) if self.at and self.at in line), 0)


def known() -> list[Known]:
    """The set."""
    return [Known(**row) for row in yaml.safe_load((SET / "set.yaml").read_text(encoding="utf-8"))]


def named(one: Known, said: Review) -> str:
    """Whether a confirmed claim is at the fault."""
    if not one.line:
        return "–"
    confirmed = [each for each in said.tested if each.outcome is Outcome.CONFIRMED]
    return "yes" if any(abs(each.claim.line - one.line) <= NEAR for each in confirmed) else "no"


async def reviewed(device: str) -> int:
    """Print the table. Returns the exit code."""
    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    settings = config.load(overrides=("judge.seed=1",)).judge
    rows: list[tuple[Known, Review]] = []
    with tempfile.TemporaryDirectory() as place:
        executor = LocalExecutor(device, Path(place) / "judge.log")
        try:
            judging = await executor.start()
            print(f"{judging.device}; {', '.join(f'{name} {text}' for name, text in judging.versions.items())}\n")
            for one in known():
                if not (SET / one.name / INDEX).is_file():
                    print(f"{one.name}: no review is recorded")
                    continue
                agent, folder = RecordedAgent(SET / one.name), Path(place) / one.name
                said = await review(one.data, (), op, judging.versions["triton"], agent, folder, (executor, settings))
                rows.append((one, said))
        finally:
            await executor.close()
    return show(rows)


def show(rows: list[tuple[Known, Review]]) -> int:
    """The table, each claim and the sum."""
    if not rows:
        print("nothing is recorded: `prompts DIR` writes what to ask")
        return 1
    print("\n| kernel | known fault | reviewed by | confirmed | refuted | not tested | fault named and confirmed |")
    print("|---|---|---|---|---|---|---|")
    for one, said in rows:
        counts = " | ".join(str(said.count(outcome)) for outcome in Outcome)
        print(f"| {one.name} | {one.fault or 'none: honest'} | {said.model} | {counts} | {named(one, said)} |")
    for one, said in rows:
        print(f"\n{one.name} ({one.file})" + (f": the review cannot be read: {said.unread}" if said.unread else ""))
        for each in said.tested:
            print(
                f"- {each.outcome}, line {each.claim.line}, {each.claim.severity}: {each.claim.claim} Judge: {each.how}"
            )
    wrong = [(one, said) for one, said in rows if one.line]
    found = sum(named(one, said) == "yes" for one, said in wrong)
    total = {outcome: sum(said.count(outcome) for _, said in rows) for outcome in Outcome}
    print(f"\n{found} of {len(wrong)} known faults named and confirmed; of {sum(total.values())} claims", end=" ")
    print(", ".join(f"{count} {outcome}" for outcome, count in total.items()))
    return 0


def write_prompts(folder: Path) -> int:
    """The prompt of each kernel, and the hash that its recorded.yaml is to hold."""
    from importlib.metadata import version

    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    folder.mkdir(parents=True, exist_ok=True)
    for one in known():
        text = render(prompt(one.data, (), op, version("triton")))
        (folder / f"{one.name}.md").write_text(text, encoding="utf-8")
        print(f"{folder / one.name}.md {hashlib.sha256(text.encode()).hexdigest()}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("what", nargs="?", choices=["prompts"])
    parser.add_argument("folder", nargs="?", type=Path)
    given = parser.parse_args()
    if given.what is None:
        return asyncio.run(reviewed(given.device))
    if given.folder is None:
        parser.error("prompts: give the folder to write them to")
    return write_prompts(given.folder)


if __name__ == "__main__":
    sys.exit(main())
