"""compute-sanitizer's words become findings on lines. The tool itself is not here: a program stands in for it."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.audit import sanitizer
from orchestrator.audit.findings import Severity
from orchestrator.ops import Op
from tests.conftest import zoo_kernel

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at _kernel+0x2a0 in /tmp/x/test/rmsnorm_triton.py:14
=========     by thread (3,0,0) in block (0,0,0)
=========     Address 0x7f0 is out of bounds
=========     Host Frame: main in rmsnorm_triton.py:30
=========
========= Invalid __global__ write of size 4 bytes
=========     at _kernel+0x2a0 in /tmp/x/test/rmsnorm_triton.py:14
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at _kernel+0x1 in /tmp/x/test/rmsnorm_triton.py:12
=========     and Read access at _kernel+0x2 in /tmp/x/test/rmsnorm_triton.py:13 [16 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""


def program(folder: Path, body: str) -> str:
    path = folder / "tool"
    path.write_text(f"#!{sys.executable}\nimport os, sys\nfrom pathlib import Path\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_memcheck_is_a_finding_and_racecheck_a_hint(rmsnorm: Op, tmp_path: Path) -> None:
    tool = program(tmp_path, f"print({MEMCHECK!r} if 'memcheck' in sys.argv else {RACECHECK!r})")
    found = sanitizer.sanitize(zoo_kernel("good"), "mine.py", rmsnorm, tool)
    assert [(one.rule, one.severity, one.line, one.file) for one in found.findings] == [
        ("sanitizer-memcheck", Severity.HIGH, 14, "mine.py"),
        ("sanitizer-racecheck", Severity.LOW, 12, "mine.py"),
    ]
    assert [one.errors for one in found.results] == [2, 1]
    assert "| memcheck | 2 | ERROR SUMMARY: 2 errors |" in found.lines()


def test_it_runs_the_ops_test_with_the_kernel_and_without_keys(rmsnorm: Op, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    body = (
        "assert sys.argv[-2:] == ['test_correctness.py', '--quick'] and Path('rmsnorm_triton.py').is_file()\n"
        "assert 'ANTHROPIC_API_KEY' not in os.environ and os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'] == '1'\n"
        "print('========= ERROR SUMMARY: 0 errors')"
    )
    found = sanitizer.sanitize(zoo_kernel("good"), "mine.py", rmsnorm, program(tmp_path, body))
    assert [one.errors for one in found.results] == [0, 0] and found.findings == ()


def test_a_tool_without_a_summary_says_nothing_of_errors(rmsnorm: Op, tmp_path: Path) -> None:
    found = sanitizer.sanitize(zoo_kernel("good"), "k.py", rmsnorm, program(tmp_path, "sys.exit('no device')"))
    assert [one.errors for one in found.results] == [None, None] and "no device" in found.results[0].said


def test_where_it_is_not_installed_that_is_said(rmsnorm: Op) -> None:
    found = sanitizer.sanitize(zoo_kernel("good"), "k.py", rmsnorm, "no-such-sanitizer")
    assert "not installed here" in found.missing and found.results == ()
