"""An audit as SARIF 2.1.0, so that code hosts show findings on their lines.

Owns the mapping to that format (OASIS, static analysis results interchange format) and nothing else. Paths are written
relative to the working directory where they lie in it, as hosts match them with the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from orchestrator import __version__
from orchestrator.audit.findings import Audit, AuditFinding, Rule, Severity, Silenced
from orchestrator.audit.rules import ABOUT

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}


def to_sarif(audit: Audit) -> str:
    """The log, as JSON."""
    rules = list(ABOUT.values())
    numbers = {rule.id: number for number, rule in enumerate(rules)}
    results = [_result(one, numbers) for one in audit.findings]
    for file in audit.files:
        results += [_silenced(one, numbers) for one in file.silenced]
    driver = {
        "name": "triton-kernel-orchestrator audit",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    unread = [_unread(file.file, file.unread) for file in audit.files if file.unread]
    invocation = {"executionSuccessful": not unread, "toolExecutionNotifications": unread}
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.repair},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": [rule.part.value]},
    }


def _result(one: AuditFinding, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "ruleId": one.rule,
        "ruleIndex": numbers[one.rule],
        "level": LEVELS[one.severity],
        "message": {"text": f"{ABOUT[one.rule].title}: {one.message}. {one.repair}"},
        "locations": [_location(one.file, one.line, one.column)],
    }


def _silenced(one: Silenced, numbers: dict[str, int]) -> dict[str, Any]:
    suppression = {"kind": "inSource", "justification": one.reason}
    return {**_result(one.finding, numbers), "suppressions": [suppression]}


def _unread(file: str, why: str) -> dict[str, Any]:
    return {"level": "error", "message": {"text": why}, "locations": [_location(file, 1, 1)]}


def _location(file: str, line: int, column: int) -> dict[str, Any]:
    region = {"startLine": line, "startColumn": column}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": region}}


def _uri(file: str) -> str:
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
