"""An audit as Markdown for a person and as JSON for a program.

Owns the wording around findings, never what is found. SARIF is another file's.
"""

from __future__ import annotations

import json

from orchestrator import records, verifying
from orchestrator.audit import running
from orchestrator.audit.findings import Audit, AuditFinding, FileAudit, Part, Severity
from orchestrator.audit.rules import ABOUT
from orchestrator.audit.running import NOTHING_RUN, Evidence
from orchestrator.records import Status
from orchestrator.text import cell, code

BESIDES = 8  # lines of a finding that are named after the first


def to_json(audit: Audit, evidence: Evidence = NOTHING_RUN) -> str:
    """{files, triton}, and what other ways brought: `judged` as `verify` prints it, `measured` and so on."""
    content = json.loads(records.to_json(audit))
    for name in ("judged", "measured", "sanitized", "reviewed"):
        if (found := getattr(evidence, name)) is not None:
            content[name] = json.loads(records.to_json(found))
    return json.dumps(content, indent=2)


def exit_code(audit: Audit, evidence: Evidence = NOTHING_RUN) -> int:
    """1 on a finding of severity high or a file that did not pass, judged or while it was timed; 3 where the judge
    failed or a model's review cannot be read.
    """
    judged = verifying.exit_code([evidence.judged]) if evidence.judged is not None else 0
    convicted = evidence.measured is not None and evidence.measured.status is not Status.PASSED
    unread = evidence.reviewed is not None and bool(evidence.reviewed.unread)
    return max(audit.exit_code, judged, int(convicted), 3 if unread else 0)


def to_markdown(audit: Audit, *, tree: bool, evidence: Evidence = NOTHING_RUN) -> str:
    """The report: for a tree one table and the grave findings, for a file its five parts and what running brought."""
    parts = _tree(audit) if tree else [*_file(audit), *running.sections(evidence)]
    return "\n".join([*parts, "", _total(audit, evidence)])


def _tree(audit: Audit) -> list[str]:
    lines = ["| file | kernels | high | medium | low | silenced | gravest |", "|---|---|---|---|---|---|---|"]
    for file in audit.files:
        counts = " | ".join(str(file.count(severity)) for severity in Severity)
        first = f"cannot be read: {file.unread}" if file.unread else _gravest(file)
        lines.append(f"| {cell(file.file)} | {file.kernels} | {counts} | {len(file.silenced)} | {cell(first)} |")
    grave = [one for one in audit.findings if one.severity is Severity.HIGH]
    for one in grave:
        lines += ["", *_finding([one])]
    return lines


def _gravest(file: FileAudit) -> str:
    return f"line {file.findings[0].line}: {file.findings[0].rule}" if file.findings else "–"


def _file(audit: Audit) -> list[str]:
    (file,) = audit.files
    lines = [f"# Audit of {code(file.file)}"]
    if file.unread:
        return [*lines, "", f"It cannot be read: {file.unread}"]
    if not file.kernels:
        lines += ["", "It has no function under triton.jit; only host code was looked at."]
    for part in Part:
        lines += ["", f"## {part.value.capitalize()}"]
        groups = _grouped([one for one in file.findings if one.part is part])
        for group in groups:
            lines += ["", *_finding(group)]
        if not groups:
            lines += ["", "Nothing found."]
    for one in file.silenced:
        where = f"line {one.finding.line}, {one.finding.rule}"
        lines += ["", f"Silenced: {where}: {code(one.reason)}"]
    return lines


def _grouped(findings: list[AuditFinding]) -> list[list[AuditFinding]]:
    """Findings of one rule and severity together, in the order of the first of each."""
    groups: dict[tuple[str, Severity], list[AuditFinding]] = {}
    for one in findings:
        groups.setdefault((one.rule, one.severity), []).append(one)
    return list(groups.values())


def _finding(group: list[AuditFinding]) -> list[str]:
    first = group[0]
    title = ABOUT[first.rule].title
    lines = [f"**{first.severity.value}: {title}** ({first.rule})", ""]
    for one in group[:BESIDES]:
        lines.append(f"- {one.file}:{one.line}: {code(one.text)}: {one.message}")
    if len(group) > BESIDES:
        lines.append(f"- and {len(group) - BESIDES} more")
    return [*lines, "", f"Why: {first.why}", "", f"Repair: {first.repair}"]


def _total(audit: Audit, evidence: Evidence) -> str:
    counts = ", ".join(f"{sum(file.count(severity) for file in audit.files)} {severity.value}" for severity in Severity)
    silenced = sum(len(file.silenced) for file in audit.files)
    against = f"names compared with triton {audit.triton}" if audit.triton else "no triton here: its names not compared"
    return f"{counts}; {silenced} silenced; {against}. From {' and '.join(evidence.ways)}."
