"""A model's review of one kernel: asked by the audit guide, its claims tested where the judge can.

Owns what the model is shown, keeping what it answered, and how a review reads. Only a confirmed claim becomes a
finding: a model's word alone accuses nobody, and it excuses nothing that rules or judge have found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import consult, prompts, resources
from orchestrator.agents import Agent, Request
from orchestrator.audit import trials
from orchestrator.audit.claims import FACTS, MOST, Claim, Outcome, Tested, read
from orchestrator.audit.findings import AuditFinding, Part, Rule, Severity
from orchestrator.audit.rules.base import declared
from orchestrator.config import JudgeSettings
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.records import Compiled, Prompt, Record, Turn
from orchestrator.text import printable

STAGE = "audit"
_WHY = "A model claimed it, and the judge saw it at the input that the claim names."
CONFIRMED = declared(
    Rule(
        "review-confirmed",
        Severity.HIGH,
        Part.CORRECTNESS,
        "a model's claim that the judge confirmed",
        _WHY,
        "Repair what the judge saw; the reason is the model's.",
    )
)


@dataclass(frozen=True)
class Review(Record):
    """What a model claimed and what became of each claim. `unread`: why there are no claims."""

    agent: str
    model: str
    tested: tuple[Tested, ...] = ()
    unreadable: tuple[str, ...] = ()
    unread: str = ""
    folder: str = ""  # of prompt and reply

    def count(self, outcome: Outcome) -> int:
        """How many claims came to that."""
        return sum(one.outcome is outcome for one in self.tested)

    def findings(self, name: str, lines: Sequence[str]) -> tuple[AuditFinding, ...]:
        """The confirmed claims that the judge saw to be wrong results; facts are found by the rules over them."""
        confirmed = [one for one in self.tested if one.outcome is Outcome.CONFIRMED and one.claim.case is not None]
        return tuple(_finding(one, name, lines) for one in confirmed)

    def lines(self) -> list[str]:
        """For the report, the confirmed first."""
        who = f"By {self.model} ({self.agent}); prompt and reply in {self.folder}."
        if self.unread:
            return [who, "", f"The review cannot be read: {self.unread}."]
        counts = ", ".join(f"{self.count(outcome)} {outcome}" for outcome in Outcome)
        shown = [f"- **{one.outcome}**, {_words(one)}" for outcome in Outcome for one in self._of(outcome)]
        bad = [f"- not a claim: {text}" for text in self.unreadable]
        note = "What is not tested is the model's word alone, and what is confirmed is that the result is wrong there."
        return [who, "", f"{len(self.tested)} claims: {counts}. {note}", "", *shown, *bad]

    def _of(self, outcome: Outcome) -> list[Tested]:
        return [one for one in self.tested if one.outcome is outcome]


def _words(one: Tested) -> str:
    claim = one.claim
    return f"line {claim.line}, claimed {claim.severity}: {claim.claim} Judge: {one.how}. Repair: {claim.repair}"


def _finding(one: Tested, name: str, lines: Sequence[str]) -> AuditFinding:
    claim, rule = one.claim, CONFIRMED
    text = printable(lines[claim.line - 1].strip()) if 0 < claim.line <= len(lines) else ""
    message = printable(f"{claim.claim} Seen by the judge: {one.how}", 400)
    repair = claim.repair or rule.repair
    return AuditFinding(rule.id, rule.severity, claim.part, name, claim.line, 1, text, message, rule.why, repair)


def prompt(kernel: bytes, found: Sequence[AuditFinding], op: Op | None, triton: str) -> Prompt:
    """What a model is asked of a file."""
    lines = kernel.decode("utf-8", "replace").splitlines()
    facts = {
        "numbered": "\n".join(f"{number:4} {line}" for number, line in enumerate(lines, 1)),
        "found": [one for one in found if one.severity is not Severity.LOW],
        "triton": triton,
        "most": MOST,
        "parts": ", ".join(json.dumps(part) for part in Part),
        "facts": ", ".join(json.dumps(fact) for fact in FACTS),
        "cases": op is not None,
        "spec": "",
        **(_of_op(op) if op is not None else {}),
    }
    guide = (resources.shipped("prompts") / "references" / "audit-guide.md").read_text(encoding="utf-8")
    return Prompt(guide.strip(), (Turn("user", prompts.review(**facts)),))


def _of_op(op: Op) -> dict[str, str]:
    spec, told = op.spec, op.spec.sweep.telling
    return {
        "spec": op.workspace_files()["SPEC.md"].decode(),
        "dims": ", ".join(f'"{dim}": 1' for dim in spec.dims),
        "parameters": ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in spec.parameters.items()),
        "dtypes": ", ".join(spec.sweep.dtypes),
        "values": ", ".join(("normal", *(told.values if told else ()))),
    }


async def review(
    kernel: bytes,
    found: Sequence[AuditFinding],
    op: Op | None,
    triton: str,
    agent: Agent,
    folder: Path,
    judge: tuple[Executor, JudgeSettings] | None,
    compiled: Sequence[Compiled] = (),
) -> Review:
    """Ask the agent, keep what it said in `folder`, and test its claims where there is an op and a judge."""
    asked = prompt(kernel, found, op, triton)
    answer = await consult.answered(agent, Request(asked, STAGE, 1, folder))
    try:
        claims, unreadable = read(answer.text)
    except ValueError as error:
        return Review(agent.name, answer.model, unread=str(error), folder=str(folder))
    results = [await _tested(claim, kernel, op, judge, compiled) for claim in claims]
    return Review(agent.name, answer.model, tuple(results), unreadable, folder=str(folder))


async def _tested(
    claim: Claim,
    kernel: bytes,
    op: Op | None,
    judge: tuple[Executor, JudgeSettings] | None,
    compiled: Sequence[Compiled],
) -> Tested:
    if op is None or judge is None:
        return Tested(claim, Outcome.NOT_TESTED, "no op is named (--op), so there is nothing to judge it by")
    return await trials.tested(claim, kernel, op, *judge, compiled)
