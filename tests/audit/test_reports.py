"""The audit as a command: exit codes, the three forms of output, and comments that silence a rule."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.audit.engine import audit, audit_bytes, check_writable
from orchestrator.audit.findings import Part, Severity
from orchestrator.audit.report import exit_code, to_markdown
from orchestrator.audit.running import Evidence
from orchestrator.audit.sarif import to_sarif
from orchestrator.cli import app
from orchestrator.errors import UsageError
from orchestrator.records import Status
from tests.measurements import measured, shape

ROOT = Path(__file__).parent.parent.parent
FAULTS = Path(__file__).parent / "faults"
GRAVE = FAULTS / "variance_of_padding.py"
HONEST = ROOT / "tests/zoo/ops/softmax.py"
LEVELS = {"error", "warning", "note"}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "orchestrator", "audit", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, cwd=ROOT)


def silenced(comment: str) -> bytes:
    return GRAVE.read_bytes().replace(b"# here", comment.encode())


def test_exit_code_says_whether_something_is_grave() -> None:
    assert command(GRAVE).returncode == 1
    assert command(HONEST).returncode == 0


def test_a_kernel_that_is_convicted_while_it_is_timed_has_not_passed() -> None:
    for status, code in ((Status.PASSED, 0), (Status.TAMPERED, 1)):
        assert exit_code(audit(HONEST), Evidence(measured=measured(shape(40), status=status))) == code


def test_missing_file_and_folder_without_kernels_are_usage_errors(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert command(tmp_path / "nothing.py").returncode == 2
    with pytest.raises(UsageError, match="no kernel"):
        audit(tmp_path)


def test_an_empty_file_in_a_tree_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("\n")
    (tmp_path / "kernel.py").write_bytes(HONEST.read_bytes())
    found = audit(tmp_path)
    assert [Path(one.file).name for one in found.files] == ["kernel.py"] and found.exit_code == 0


def test_a_file_that_the_system_does_not_give_out_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(HONEST.read_bytes())
    (tmp_path / "memory.py").symlink_to("/proc/self/mem")  # a plain file whose reading fails, whoever asks
    found = audit(tmp_path)
    assert [Path(one.file).name for one in found.files] == ["kernel.py", "memory.py"] and found.exit_code == 1
    assert "cannot be read: [Errno 5]" in to_markdown(found, tree=True)


def test_op_wants_a_file() -> None:
    result = command(FAULTS, "--op", "rmsnorm")
    assert result.returncode == 2
    assert "--op is for one file" in result.stderr


def test_a_file_that_does_not_parse_is_said_and_not_accepted(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    found = audit(tmp_path / "broken.py")
    assert found.exit_code == 1
    assert "syntax error" in to_markdown(found, tree=False)


def test_markdown_has_the_five_parts_and_the_gravest_first() -> None:
    found = audit(GRAVE)
    text = to_markdown(found, tree=False)
    titles = [line[3:].lower() for line in text.splitlines() if line.startswith("## ")]
    assert titles == [*(part.value for part in Part), "compiled"]
    assert found.findings[0].severity is Severity.HIGH
    assert "variance_of_padding.py:14" in text


def test_a_tree_is_one_table() -> None:
    lines = to_markdown(audit(FAULTS), tree=True).splitlines()
    rows = [line for line in lines if line.startswith("| ") and ".py |" in line]
    assert len(rows) == len(list(FAULTS.glob("*.py")))


def test_json_holds_every_finding(tmp_path: Path) -> None:
    result = command(GRAVE, "--json", "--sarif", tmp_path / "log.sarif")
    content = json.loads(result.stdout)
    assert [one["rule"] for one in content["files"][0]["findings"]][0] == "padding-in-sum"
    assert json.loads((tmp_path / "log.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("place", ["nowhere/log.sarif", "."])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, place: str) -> None:
    result = command(GRAVE, "--op", "rmsnorm", "--device", "cpu", "--sarif", tmp_path / place)
    assert (result.returncode, result.stdout) == (2, "")
    assert "cannot be written" in result.stderr and result.stderr.count("\n") == 1, "nothing was judged"


def test_a_report_that_cannot_be_written_after_all_loses_nothing(tmp_path: Path) -> None:
    result = command(GRAVE, "--sarif", "/dev/full")
    assert result.returncode == 2 and "padding-in-sum" in result.stdout
    assert "/dev/full cannot be written" in result.stderr


def test_where_a_report_could_be_written_nothing_is_left_by_asking(tmp_path: Path) -> None:
    check_writable(tmp_path / "log.sarif")
    assert not list(tmp_path.iterdir())
    (tmp_path / "log.sarif").write_text("old")
    check_writable(tmp_path / "log.sarif")
    assert (tmp_path / "log.sarif").read_text() == "old"


def test_a_comment_with_a_reason_silences_its_rule_on_its_line() -> None:
    found = audit_bytes(silenced("# audit: ignore padding-in-sum N is a power of two"), "kernel.py")
    assert "padding-in-sum" not in {one.rule for one in found.findings}
    assert [(one.finding.rule, one.reason) for one in found.silenced] == [("padding-in-sum", "N is a power of two")]


@pytest.mark.parametrize("comment", ["# audit: ignore padding-in-sum", "# audit: ignore int32-offset no matter"])
def test_no_reason_or_another_rule_silences_nothing(comment: str) -> None:
    found = audit_bytes(silenced(comment), "kernel.py")
    assert "padding-in-sum" in {one.rule for one in found.findings}


def test_sarif_has_the_structure_that_hosts_need() -> None:
    """What SARIF 2.1.0 requires of each object that is written; its schema's licence does not let it lie here."""
    log = json.loads(to_sarif(audit(FAULTS)))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] and all(rule["id"] and rule["help"]["text"] for rule in rules)
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert isinstance(run["invocations"][0]["executionSuccessful"], bool)
    for result in run["results"]:
        assert result["message"]["text"] and result["level"] in LEVELS
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (place,) = result["locations"]
        where = place["physicalLocation"]
        assert where["region"]["startLine"] >= 1 and where["region"]["startColumn"] >= 1
        assert (
            where["artifactLocation"]["uri"].startswith("tests/audit/faults/")
            or "://" in where["artifactLocation"]["uri"]
        )


def test_silenced_findings_are_suppressed_in_sarif(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(silenced("# audit: ignore padding-in-sum known"))
    results = json.loads(to_sarif(audit(tmp_path / "kernel.py")))["runs"][0]["results"]
    (one,) = [result for result in results if result["ruleId"] == "padding-in-sum"]
    assert one["suppressions"] == [{"kind": "inSource", "justification": "known"}]


def test_the_command_imports_neither_torch_nor_triton() -> None:
    code = (
        f"import sys; sys.argv = ['orchestrator', 'audit', {str(HONEST)!r}]\n"
        "from orchestrator.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'triton') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([str(FAULTS), "--model"], "--model is for one file"),
        ([str(GRAVE), "--sanitize"], "--sanitize runs the file as a kernel of an op; give --op"),
        ([str(GRAVE), "--op", "rmsnorm", "--measure", "--device", "cpu"], "nothing to measure on"),
        ([str(GRAVE), "--agent", "inbox"], "give --model too"),
    ],
)
def test_what_an_option_needs_is_said(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert isinstance(result.exception, UsageError) and told in str(result.exception)
