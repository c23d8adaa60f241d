"""Files through the rules: which files, what was found, what their comments silence.

Owns reading files as text and the comment `# audit: ignore RULE reason`. Never imports or runs an audited file.
"""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import source as sources
from orchestrator.audit import compiled as compiles
from orchestrator.audit.context import Context, context
from orchestrator.audit.findings import Audit, AuditFinding, FileAudit, Hit, Rule, Silenced, in_order
from orchestrator.audit.language import installed
from orchestrator.audit.rules import RULES
from orchestrator.errors import UsageError
from orchestrator.records import Compiled, Finding
from orchestrator.text import printable

KEPT = 40  # findings of a candidate
_COMMENT = re.compile(r"#\s*audit:\s*ignore\s+([\w-]+)[ \t]*(.*)")
SKIPPED = {".git", "__pycache__", ".venv", "venv", "node_modules", ".tox", "build", "dist"}


def audit(path: Path) -> Audit:
    """Audit a file, or every Python file of a folder that defines a kernel. Raises UsageError for neither."""
    language = installed()
    version = language.version if language is not None else ""
    if path.is_dir():
        read = [_of_tree(one) for one in _tree(path)]
        found = tuple(one for one in read if one is not None)
        if not found:
            raise UsageError(
                f"no kernel in {printable(str(path))}: no Python file there has a function under triton.jit"
            )
        return Audit(found, version)
    return Audit((audit_bytes(_bytes(path), str(path)),), version)


def established(data: bytes, name: str, triton: str, compiled: Sequence[Compiled] = ()) -> tuple[AuditFinding, ...]:
    """What a candidate's source shows, and what it was compiled to, the gravest first and no more than KEPT.

    `triton` is the version that judged it: where another is installed here, names are held against neither. Its
    comments silence nothing: what a candidate says may convict it, never acquit it.
    """
    here = installed()
    found = _audited(data, name, here is not None and here.version == triton)
    shown = [*found.findings, *(one.finding for one in found.silenced), *compiles.findings(compiled, data, name)]
    return in_order(shown)[:KEPT]


def audit_bytes(data: bytes, name: str) -> FileAudit:
    """Audit one file's content."""
    return _audited(data, name, True)


@functools.lru_cache(maxsize=8)  # a run asks twice: of what has passed, and before it is merged
def _audited(data: bytes, name: str, named: bool) -> FileAudit:
    """`named`: names are held against those of the installed Triton."""
    source = sources.read(data, name)
    if isinstance(source, Finding):
        return FileAudit(name, 0, unread=f"{source.message}; {source.advice}")
    facts = context(source, installed() if named else None)
    hits = ((rule, hit) for rule, look in RULES.values() for hit in _distinct(list(look(facts))))
    return _with(FileAudit(name, len(source.kernels)), [_finding(*hit, facts, name) for hit in hits], source.text)


def with_more(audit: Audit, findings: Sequence[AuditFinding], data: bytes) -> Audit:
    """The audit of one file with what other ways than its source brought; its comments silence these too."""
    (file,) = audit.files
    return replace(audit, files=(_with(file, findings, data.decode("utf-8", "replace")),)) if findings else audit


def _with(file: FileAudit, findings: Sequence[AuditFinding], text: str) -> FileAudit:
    comments = _comments(text)
    reasons = [(one, comments.get((one.line, one.rule))) for one in findings]
    kept = in_order([*file.findings, *(one for one, reason in reasons if reason is None)])
    silenced = tuple(Silenced(one, reason) for one, reason in reasons if reason is not None)
    return replace(file, findings=kept, silenced=(*file.silenced, *silenced))


def check_writable(path: Path) -> None:
    """Before the work of a report: raises UsageError where it cannot be written to this file. Leaves nothing behind."""
    there = path.exists()
    if there and not path.is_file() and not path.is_dir():
        return  # of a pipe, a reader would take this for the end
    try:
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write(path: Path, text: str) -> None:
    """Write a report to a file; raises UsageError where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{printable(str(path))} cannot be written: {printable(str(error))}; name a file")


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Each place and message once: two launches of a kernel say the same of it."""
    found: dict[tuple[int, str], Hit] = {}
    for hit in hits:
        found.setdefault((id(hit.node), hit.message), hit)
    return list(found.values())


def _finding(rule: Rule, hit: Hit, facts: Context, name: str) -> AuditFinding:
    line = facts.source.line(hit.node)
    lines = facts.source.lines
    text = printable(lines[line - 1].strip()) if 0 < line <= len(lines) else ""
    column = int(getattr(hit.node, "col_offset", 0)) + 1
    severity = hit.severity or rule.severity
    return AuditFinding(
        rule.id, severity, rule.part, name, line, column, text, printable(hit.message, 400), rule.why, rule.repair
    )


def _comments(text: str) -> dict[tuple[int, str], str]:
    """The reasons of `# audit: ignore RULE reason`, by line and rule. Without a reason nothing is silenced."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if match is not None and match[2].strip():
            found[token.start[0], match[1]] = printable(match[2].strip())
    return found


def _tree(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if p.is_file() and not SKIPPED & set(p.relative_to(folder).parts))


def _of_tree(path: Path) -> FileAudit | None:
    """One of many, None where it defines no kernel. One that cannot be read ends the audit of no other."""
    try:
        data = _bytes(path)
    except UsageError as error:
        return FileAudit(str(path), 0, unread=printable(str(error.__cause__ or error)))
    found = audit_bytes(data, str(path)) if b"jit" in data else None
    return found if found is not None and (found.kernels or found.unread) else None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(sources.MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"no file {printable(str(path))}; give the path of a kernel file or a folder") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{printable(str(path))} cannot be read: {printable(str(error))}") from error
