"""`report` and `explain` as a person asks for them; `replay` is tested with a judge, beside its module."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli import app
from orchestrator.errors import UsageError
from tests.report.conftest import History


def said(*arguments: str) -> str:
    """What a command printed; an error of ours is raised, for `main` to print."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_report_writes_the_pages_of_what_is_chosen(history: History, tmp_path: Path) -> None:
    workspaces, (merged, *_) = history
    out = tmp_path / "site"
    assert (
        said("report", merged.id, "--workspaces", str(workspaces), "--out", str(out))
        == f"{out / 'index.html'}: 1 run\n"
    )
    assert (out / "runs" / f"{merged.id}.html").is_file()
    with pytest.raises(UsageError, match="give one of them"):
        said("report", merged.id, "--last", "--workspaces", str(workspaces))
    with pytest.raises(UsageError, match="no run in"):
        said("report", "--workspaces", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]  # what was refused left nothing


def test_explain_says_why_a_run_or_an_attempt_ended_so(history: History) -> None:
    workspaces, (merged, lost, *_) = history
    run = said("explain", merged.id, "--workspaces", str(workspaces)).splitlines()
    assert run[0].startswith("MERGE: Faster: ") and "wholly above 1 and the margin of 2.0%" in run[1] and len(run) <= 10
    attempt = said("explain", f"{lost.id}#2", "--workspaces", str(workspaces)).splitlines()
    assert attempt[0].startswith("attempt 2 (correct, round 2") and "smallest failing case: M = 1, N = 7" in attempt[1]
    with pytest.raises(UsageError, match="has no attempt 4; it has 3"):
        said("explain", f"{lost.id}#4", "--workspaces", str(workspaces))
    with pytest.raises(UsageError, match="did you mean"):
        said("explain", f"{lost.id}x", "--workspaces", str(workspaces))
