"""Each rule finds its planted faults, on their line, and nothing grave in kernels that are right."""

from __future__ import annotations

import ast
import gc
import re
import time
from pathlib import Path

import pytest

from orchestrator import ops, reply
from orchestrator.audit.engine import audit, audit_bytes, established
from orchestrator.audit.findings import Severity
from orchestrator.audit.language import installed
from orchestrator.audit.rules import RULES

HERE = Path(__file__).parent
TRITON = language.version if (language := installed()) is not None else ""
ROOT = HERE.parent.parent
FAULTS = sorted((HERE / "faults").glob("*.py"))
HONEST = [
    ROOT / "orchestrator/redteam/corpus/honest",
    ROOT / "orchestrator/redteam/corpus/given/honest",
    ROOT / "tests/zoo/ops",
    ROOT / "tests/zoo/policy/honest",
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
    if rule == "do-not-specialize-constexpr" and language is not None and language.release < (3, 7, 1):
        severity = Severity.MEDIUM  # ignored by older releases
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


@pytest.mark.parametrize("path", sorted((HERE / "honest").glob("*.py")), ids=lambda path: path.stem)
def test_no_grave_finding_where_it_only_looks_like_one(path: Path) -> None:
    """Each of these was once found in a public library and is right there."""
    found = audit_bytes(path.read_bytes(), path.name)
    assert [(one.line, one.rule) for one in found.findings if one.severity is Severity.HIGH] == []


def test_names_are_held_against_the_triton_that_judged_alone() -> None:
    """What a newer release has and this one lacks passed there, and must not be refused here."""
    data = (HERE / "faults" / "name_from_nowhere.py").read_bytes()
    assert [one.rule for one in established(data, "k.py", TRITON) if one.severity is Severity.HIGH] == ["unknown-name"]
    assert [one.rule for one in established(data, "k.py", "99.0") if one.severity is Severity.HIGH] == []


def test_no_grave_finding_in_recorded_replies() -> None:
    """A run that replays them must not end otherwise because of the audit."""
    root = ROOT / "configs/ops"
    names = [path.parent.parent.name for path in root.glob("*/recorded/*.md")]
    assert len(names) >= 6
    for name in set(names):
        spec = ops.load(name, root).spec
        for path in (root / name / "recorded").glob("*.md"):
            kernel = reply.files(path.read_text(), spec.kernel_name, spec.function)[spec.kernel_name]
            assert [
                one.rule for one in established(kernel, path.name, TRITON) if one.severity is Severity.HIGH
            ] == [], path


def test_launches_of_two_kernels_of_one_name_are_held_against_neither() -> None:
    """Which of them a launch means, the order of running says."""
    found = audit(ROOT / "tests/zoo/interpreter/names.py")
    assert [one.line for one in found.findings if one.severity is Severity.HIGH] == []


def test_every_rule_says_why_and_how_to_repair() -> None:
    for rule, look in RULES.values():
        assert rule.why.endswith(".") and rule.repair.endswith("."), rule.id
        assert ast.parse(look.__name__)


def test_names_assigned_in_terms_of_each_other_end_no_audit() -> None:
    """A model writes such host code, and a file may be made of nothing else."""
    steps = "".join(f"    n{i % 7} = n{i % 5} * n{i % 3}\n    n{i % 3} *= n{i % 7}\n" for i in range(200))
    text = (
        "import triton, triton.language as tl\n\n\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n"
        "    at = tl.arange(0, B)\n    tl.store(x + at, 0.0, mask=at < n)\n\n\n"
        f"def f(x):\n    n0 = x.numel()\n{steps}    k[(n1,)](x, n0 * n2, B=n3)\n"
    )
    assert [one.rule for one in audit_bytes(text.encode(), "f.py").findings if one.severity is Severity.HIGH] == []


HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
STORE = "    tl.store(x + a0, 0.0, mask=a0 < N)\n"


def nested_loops(count: int) -> str:
    loops = "".join(f"{'    ' * (number + 1)}for i{number} in range(N):\n" for number in range(count))
    return f"{HEAD}def k(x, N):\n    a0 = tl.arange(0, 8)\n{loops}{'    ' * (count + 1)}a0 = a0 + 1\n{STORE}"


def helpers_of_helpers(calls: int) -> str:
    text = f"{HEAD}def h0(a):\n    return a\n\n\n"
    for number in (1, 2):
        text += f"@triton.jit\ndef h{number}(a):\n    return {' + '.join([f'h{number - 1}(a)'] * calls)}\n\n\n"
    return f"{text}@triton.jit\ndef k(x, N):\n    a0 = {' + '.join(['h2(tl.arange(0, 8))'] * calls)}\n{STORE}"


def wide_expressions(count: int) -> str:
    line = f"tl.join({', '.join(f'a{number}' for number in range(60))})"
    names = "".join(f"    a{number} = tl.join({', '.join(['N'] * 150)})\n" for number in range(60))
    return f"{HEAD}def k(x, N):\n{names}{f'    b = {line}{chr(10)}' * count}    a0 = b\n{STORE}"


def test_an_audit_makes_no_classes() -> None:
    """They are garbage that only the collector finds, and a batch audits thousands of kernels."""
    before = len(ast.NodeTransformer.__subclasses__())
    gc.disable()
    try:
        assert audit_bytes(wide_expressions(2).encode(), "k.py").kernels
        assert len(ast.NodeTransformer.__subclasses__()) == before
    finally:
        gc.enable()


@pytest.mark.parametrize("text", [nested_loops(17), helpers_of_helpers(60), wide_expressions(300)])
def test_a_candidate_cannot_make_its_audit_endless(text: str) -> None:
    """The orchestrator audits what passed, in its own process: without bounds each of these takes minutes."""
    begun = time.process_time()
    assert audit_bytes(text.encode(), "k.py").kernels
    assert time.process_time() - begun < 10
