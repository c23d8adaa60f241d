"""Each rule finds its planted faults, on their line, and nothing grave in kernels that are right."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from orchestrator.audit.engine import audit, audit_bytes
from orchestrator.audit.findings import Severity
from orchestrator.audit.rules import RULES

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FAULTS = sorted((HERE / "faults").glob("*.py"))
HONEST = [
    ROOT / "orchestrator/redteam/corpus/honest",
    ROOT / "orchestrator/redteam/corpus/given/honest",
    ROOT / "tests/zoo/ops",
]


def planted(path: Path) -> tuple[str, Severity, int]:
    """The rule and severity of a file's first line, and the line that is marked `# here`."""
    lines = path.read_text().splitlines()
    match = re.match(r"# ([\w-]+) (high|medium|low): .", lines[0])
    assert match is not None, path
    marked = [number for number, line in enumerate(lines, start=1) if line.endswith("# here")]
    assert len(marked) == 1, path
    return match[1], Severity(match[2]), marked[0]


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_planted_fault_is_found_on_its_line(path: Path) -> None:
    rule, severity, line = planted(path)
    found = audit_bytes(path.read_bytes(), path.name)
    assert (rule, severity, line) in [(one.rule, one.severity, one.line) for one in found.findings]


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_planted_fault_brings_no_other_grave_finding(path: Path) -> None:
    rule = planted(path)[0]
    found = audit_bytes(path.read_bytes(), path.name)
    assert {one.rule for one in found.findings if one.severity is Severity.HIGH} <= {rule}


def test_there_is_a_planted_fault_for_every_rule() -> None:
    assert {planted(path)[0] for path in FAULTS} == set(RULES)
    assert len(FAULTS) >= 40


@pytest.mark.parametrize("folder", HONEST, ids=lambda path: "-".join(path.parts[-2:]))
def test_no_grave_finding_in_honest_kernels(folder: Path) -> None:
    found = audit(folder)
    assert len(found.files) >= 6
    assert [(one.file, one.line, one.rule) for one in found.findings if one.severity is Severity.HIGH] == []


def test_every_rule_says_why_and_how_to_repair() -> None:
    for rule, look in RULES.values():
        assert rule.why.endswith(".") and rule.repair.endswith("."), rule.id
        assert ast.parse(look.__name__)
