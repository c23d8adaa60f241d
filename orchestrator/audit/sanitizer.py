"""compute-sanitizer over the op's own test: what memcheck sees is a finding, what racecheck sees a hint.

Owns finding the tool, running it and reading its words. The test runs the audited file in a process of its own with
the judge's environment, which has no keys, but without the judge's confinement: the tool and a confined process cannot
both be its parent. So it is only done where a person asks for it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.audit.findings import AuditFinding, Part, Rule, Severity
from orchestrator.audit.rules.base import declared
from orchestrator.executors.local import judge_environment
from orchestrator.ops import Op
from orchestrator.records import Record
from orchestrator.text import cell, printable
from orchestrator.tree import lay_out

TOOL = "compute-sanitizer"
_LIMIT_S = 600
_NOT_HERE = f"{TOOL} is not installed here (it comes with the CUDA toolkit): nothing was sanitized"
_REPORT = re.compile(r"^=========\s+((?:Invalid|Misaligned|Potential|Error:|Warning:|Race) ?.*)$")
_PLACE = re.compile(r"^=========\s.*?(?P<file>[\w.-]+\.py):(?P<line>\d+)")
_SEEN = re.compile(r"^========= (?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)")
_BRIEFLY = ("--print-limit", "50", "--show-backtrace", "device")  # the host's side takes minutes and is torch's
_MOST = 20  # findings of one tool

MEMCHECK = declared(
    Rule(
        "sanitizer-memcheck",
        Severity.HIGH,
        Part.CORRECTNESS,
        "compute-sanitizer saw an invalid access",
        "The hardware was asked for memory that is not there, or not aligned; that it went well elsewhere is luck.",
        "Mask the access, or correct its offset.",
    )
)
RACECHECK = declared(
    Rule(
        "sanitizer-racecheck",
        Severity.LOW,
        Part.CORRECTNESS,
        "compute-sanitizer sees a possible race in shared memory",
        "Two threads of a program access the same place and nothing orders them. Triton's own exchanges look alike.",
        "Look whether the kernel reads what it wrote; put tl.debug_barrier() between if so.",
    )
)
_TOOLS = {"memcheck": MEMCHECK, "racecheck": RACECHECK}


@dataclass(frozen=True)
class ToolResult(Record):
    """What one tool came to."""

    tool: str
    errors: int | None  # None: it did not come to its end
    said: str  # its summary, or how it ended


@dataclass(frozen=True)
class Sanitized(Record):
    """What the tools came to; `missing` says why there is nothing."""

    results: tuple[ToolResult, ...] = ()
    findings: tuple[AuditFinding, ...] = ()
    missing: str = ""

    def lines(self) -> list[str]:
        """For the report."""
        if self.missing:
            return [f"{self.missing}."]
        rows = [
            f"| {one.tool} | {'–' if one.errors is None else one.errors} | {cell(one.said)} |" for one in self.results
        ]
        return ["| tool | errors | |", "|---|---|---|", *rows]


def sanitize(kernel: bytes, name: str, op: Op, tool: str = TOOL) -> Sanitized:
    """The op's test under both tools, with this kernel; `tool` is the program. What is not installed is said."""
    program = shutil.which(tool)
    if program is None:
        return Sanitized(missing=_NOT_HERE)
    results, findings = [], []
    with tempfile.TemporaryDirectory(prefix="orchestrator-sanitize-") as place:
        folder = Path(place) / "test"
        lay_out({**op.workspace_files(), op.spec.kernel_name: kernel}, folder)
        for kind, rule in _TOOLS.items():
            result, output = _run([program, "--tool", kind, *_BRIEFLY], kind, folder)
            results.append(result)
            findings += read(output, rule, op.spec.kernel_name, name, kernel.decode("utf-8", "replace").splitlines())
    return Sanitized(tuple(results), tuple(findings))


def _run(command: list[str], kind: str, folder: Path) -> tuple[ToolResult, str]:
    """PyTorch's caching of memory would hide what lies beyond a tensor, so each tensor is an allocation of its own."""
    environment = judge_environment() | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    test = [sys.executable, "test_correctness.py", "--quick"]
    try:
        done = subprocess.run(
            [*command, *test],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ToolResult(kind, None, f"did not end within {_LIMIT_S} s"), ""
    except OSError as error:
        return ToolResult(kind, None, printable(str(error))), ""
    output = done.stdout + done.stderr
    summary = next((line for line in reversed(output.splitlines()) if _SEEN.match(line)), None)
    if summary is None:
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
        return ToolResult(
            kind, None, f"no summary; it ended with exit code {done.returncode}: {printable(last)}"
        ), output
    found = _SEEN.match(summary)
    assert found is not None
    return ToolResult(kind, int(found[1]), printable(summary.removeprefix("========= "))), output


def read(output: str, rule: Rule, kernel_name: str, name: str, lines: Sequence[str]) -> list[AuditFinding]:
    """The places in the kernel file that a tool's words name, each once."""
    found: dict[tuple[int, str], AuditFinding] = {}
    what = ""
    for row in output.splitlines():
        if report := _REPORT.match(row):
            what = printable(report[1].strip(), 200)
        place = _PLACE.match(row)
        if place is None or not what or place["file"] != kernel_name:
            continue
        line = int(place["line"])
        text = printable(lines[line - 1].strip()) if 0 < line <= len(lines) else ""
        found.setdefault(
            (line, what),
            AuditFinding(rule.id, rule.severity, rule.part, name, line, 1, text, what, rule.why, rule.repair),
        )
        what = ""
    return list(found.values())[:_MOST]
