"""Imports run one way, and `--help` is quick because it imports next to nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "orchestrator"
# Of the audit, what reads a file's source and nothing else.
FACTS = ("audit.rules", "audit.flow", "audit.values", "audit.context", "audit.host", "audit.language", "audit.findings")
RUNNERS = {"library", "batch"}  # the only ones that may start the loop


def imports(path: Path) -> set[str]:
    """Every module name imported anywhere in the file, except under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[str, set[str]]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): imports(path)
        for path in PACKAGE.rglob("*.py")
        if not {"_data", "corpus"} & set(path.parts)
    }


def test_records_and_errors_import_nothing_of_ours() -> None:
    for name in ("records", "errors"):
        assert not [m for m in modules()[name] if m.startswith("orchestrator")]


def test_only_the_judge_imports_torch_and_triton() -> None:
    for name, imported in modules().items():
        if not name.startswith("judge."):
            assert not [m for m in imported if m.split(".")[0] in ("torch", "triton")], name


def test_the_judge_knows_no_agent_executor_or_loop() -> None:
    forbidden = ("orchestrator.agents", "orchestrator.executors", "orchestrator.loop", "orchestrator.workspace")
    for name, imported in modules().items():
        if name.startswith("judge"):
            assert not [m for m in imported if m.startswith(forbidden)], name


def test_agents_share_what_confines_and_nothing_else_of_the_judge() -> None:
    shared = {
        f"orchestrator.judge.{name}"
        for name in ("channel", "landlock", "linux", "proctree", "sandbox", "seccomp", "surroundings")
    }
    for name, imported in modules().items():
        if name.startswith("agents."):
            of_the_judge = {m for m in imported if m.startswith("orchestrator.judge.")}
            assert not {m for m in of_the_judge if ".".join(m.split(".")[:3]) not in shared}, name


def test_only_runners_import_the_loop() -> None:
    for name, imported in modules().items():
        if name not in RUNNERS:
            assert not [m for m in imported if m.startswith("orchestrator.loop")], name


def test_policy_and_source_are_pure() -> None:
    allowed = ("orchestrator.records", "orchestrator.source", "orchestrator.policy")
    for name, imported in modules().items():
        if name == "source" or name.startswith("policy"):
            assert not [m for m in imported if m.startswith("orchestrator.") and not m.startswith(allowed)], name


def test_audit_rules_see_facts_alone() -> None:
    allowed = ("orchestrator.audit", "orchestrator.source", "orchestrator.records")
    for name, imported in modules().items():
        if name.startswith(FACTS):
            assert not [m for m in imported if m.startswith("orchestrator.") and not m.startswith(allowed)], name


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['orchestrator', '--help']\n"
        "from orchestrator.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'triton', 'openai', 'anthropic', 'git', 'pydantic') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert result.stdout.splitlines()[-1] == "[]"
    assert "--op" in result.stdout
