"""What an audit finds, as records.

Owns what a rule is, and the order of findings. Owns no rule; a finding itself is a record, because a report holds it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.records import AuditFinding, Part, Record, Severity

__all__ = ["Audit", "AuditFinding", "FileAudit", "Hit", "Part", "Rule", "Severity", "Silenced", "in_order"]


@dataclass(frozen=True)
class Rule(Record):
    """One thing that is looked for. `severity` is the gravest that its findings can have."""

    id: str
    severity: Severity
    part: Part
    title: str
    why: str
    repair: str


@dataclass(frozen=True)
class Hit:
    """A place that a rule objects to, as the rule reports it."""

    node: ast.AST
    message: str
    severity: Severity | None = None  # None: the rule's own


@dataclass(frozen=True)
class Silenced(Record):
    """A finding that a comment on its line silenced, and the reason given there."""

    finding: AuditFinding
    reason: str


@dataclass(frozen=True)
class FileAudit(Record):
    """What was found in one file. `unread` says why a file has no facts; nothing was looked for in it then."""

    file: str
    kernels: int
    findings: tuple[AuditFinding, ...] = ()
    silenced: tuple[Silenced, ...] = ()
    unread: str = ""

    def count(self, severity: Severity) -> int:
        """How many findings of this severity."""
        return Counter(finding.severity for finding in self.findings)[severity]


@dataclass(frozen=True)
class Audit(Record):
    """What was found in all files asked about."""

    files: tuple[FileAudit, ...]
    triton: str  # the version whose names were compared; "" where none is installed

    @property
    def findings(self) -> tuple[AuditFinding, ...]:
        """Of all files, the gravest first."""
        return in_order([finding for file in self.files for finding in file.findings])

    @property
    def exit_code(self) -> int:
        """1 where something is of severity high, or a file could not be read."""
        return int(any(file.unread or file.count(Severity.HIGH) for file in self.files))


def in_order(findings: Sequence[AuditFinding]) -> tuple[AuditFinding, ...]:
    """Sorted by priority."""
    return tuple(sorted(findings, key=lambda finding: finding.priority))
