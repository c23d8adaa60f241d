"""The orchestrator for programs: the README's lines as they stand, and that importing it costs nothing."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator
from orchestrator import library
from orchestrator.errors import UsageError

ROOT = Path(__file__).parent.parent
GOOD = ROOT / "tests" / "zoo" / "kernels" / "good.py"


@pytest.mark.long  # the command line's own tests go through the same calls
def test_the_ten_lines_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of their own, as a person's program: a run, a verdict, and a measurement or why there is none."""
    text = (ROOT / "README.md").read_text().partition("## From a program")[2]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None and len(found[1].splitlines()) <= 12
    shutil.copy(GOOD, tmp_path / "kernel.py")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setenv("ORCHESTRATOR_JUDGE__DEVICE", "cpu")
    result = subprocess.run([sys.executable, "-c", found[1]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    run, verified, measured = result.stdout.splitlines()
    assert run.startswith("UNMEASURED Correct, but not measured") and "PASSED" in run
    assert verified == "PASSED 75 ()"
    assert "nothing to measure on" in measured
    assert (tmp_path / "workspaces" / "ledger.sqlite").is_file()  # entered as a run of the command line is


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ("torch", "pydantic", "git", "orchestrator.library")
    code = f"import sys, orchestrator; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"


def test_the_names_are_the_library_s_also_after_the_modules_were_imported() -> None:
    for name in orchestrator.__all__:
        assert getattr(orchestrator, name) is getattr(library, name)
    with pytest.raises(AttributeError, match="no attribute 'run_ops'"):
        orchestrator.run_ops  # noqa: B018


def test_what_cannot_be_is_said_before_anything_is_started(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean rmsnorm"):
        orchestrator.verify(GOOD, op="rmsnorn")
    with pytest.raises(UsageError, match=r"judge\.devise is unknown; did you mean judge\.device"):
        orchestrator.verify(GOOD, op="rmsnorm", settings={"judge": {"devise": "cpu"}})
    with pytest.raises(UsageError, match="no file"):
        orchestrator.verify(tmp_path / "absent.py", op="rmsnorm")
    with pytest.raises(UsageError, match="nothing to measure on"):
        orchestrator.measure(GOOD, op="rmsnorm", settings={"judge": {"device": "cpu"}})


def test_it_works_where_a_loop_runs_already() -> None:
    async def answer() -> int:
        return 42

    async def notebook() -> int:
        return library._finished(answer())

    assert asyncio.run(notebook()) == library._finished(answer()) == 42


def test_an_error_carries_no_trace_of_how_the_work_was_begun() -> None:
    async def refused() -> None:
        raise ConnectionRefusedError("connect call failed")

    with pytest.raises(ConnectionRefusedError) as caught:
        library._finished(refused())
    assert caught.value.__context__ is None, "an agent names the innermost cause"
