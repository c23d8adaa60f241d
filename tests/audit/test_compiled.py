"""What compiling brings: findings on their lines, compared across configurations, and the sections of a report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.audit import compiled, engine, report
from orchestrator.audit.findings import Audit, Severity
from orchestrator.audit.running import Evidence
from orchestrator.audit.sanitizer import Sanitized
from orchestrator.audit.sarif import to_sarif
from orchestrator.records import CaseResult, Compiled, Report, Status
from orchestrator.verifying import Verified

KERNEL = b"""import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["N"])
@triton.jit
def k(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * N, mask=at < N, other=0.0)
    tl.store(y_ptr + at, tl.dot(x, x), mask=at < N)
"""
FINE = Compiled(
    *("k", "sm_90", 4, 3, 32, 0, 1024, {128: 4}, {128: 1}, 0, True, 1.0, 0, (), 5),
    **{"types": {"x_ptr": "*fp16"}, "constants": {"BLOCK": 64}},
)
CASE = CaseResult(
    *("float16-M1xN7", {"M": 1, "N": 7}, "float16", 1.0, False, Status.PASSED),
    **{"max_abs": 1e-3, "max_rel": 1e-3, "tolerance_ratio": 0.25, "precision": 1.5},
)
PASSED = Report(
    *(Status.PASSED, "1 of 1 cases passed"),
    **{"cases": (CASE,), "expected_cases": 1, "nonce": "n", "interpreted": True, "compiled": (FINE,)},
)


def rules(*several: Compiled) -> list[tuple[str, int]]:
    return [(one.rule, one.line) for one in compiled.findings(several, KERNEL, "k.py")]


def test_a_kernel_that_compiles_well_has_no_finding() -> None:
    assert rules(FINE, replace(FINE, target="gfx942", registers=None, occupancy=None, uncoalesced=None)) == []


@pytest.mark.parametrize(
    ("change", "rule", "line"),
    [
        ({"spilled_bytes": 512, "stack_bytes": 512}, "compiled-spills", 5),
        ({"stack_bytes": 64}, "compiled-stack", 5),
        ({"load_bits": {16: 8}}, "compiled-narrow-access", 5),
        ({"uncoalesced": (9,)}, "compiled-uncoalesced", 9),
        ({"tensor_cores": False}, "compiled-no-tensor-cores", 5),
        ({"occupancy": 0.125}, "compiled-low-occupancy", 5),
    ],
)
def test_each_fact_is_a_finding_on_its_line_and_none_is_grave(change: dict[str, object], rule: str, line: int) -> None:
    assert rules(FINE, replace(FINE, target="sm_80", **change)) == [(rule, line)]  # type: ignore[arg-type]
    found = compiled.findings([replace(FINE, **change)], KERNEL, "k.py")  # type: ignore[arg-type]
    assert found[0].severity is not Severity.HIGH and found[0].text == KERNEL.decode().splitlines()[line - 1].strip()


def test_a_candidate_is_told_of_them_too() -> None:
    found = engine.established(KERNEL, "k.py", "", [replace(FINE, spilled_bytes=64)])
    assert "compiled-spills" in {one.rule for one in found}


def test_configurations_are_compared_for_the_same_arguments_and_target() -> None:
    spilled = replace(FINE, constants={"BLOCK": 128}, spilled_bytes=64)
    elsewhere = replace(FINE, target="sm_80", constants={"BLOCK": 256})
    (one,) = compiled.findings([FINE, spilled, elsewhere], KERNEL, "k.py")
    assert (
        "64 bytes a thread, sm_90, fp16, BLOCK=128" in one.message and "1 of 3 specializations (sm_90)" in one.message
    )
    assert one.message.endswith("of 2 configurations there these are free of it: BLOCK=64, num_warps=4, num_stages=3")
    (all_,) = compiled.findings([replace(FINE, spilled_bytes=8), spilled], KERNEL, "k.py")
    assert all_.message.endswith("in each of its 2 configurations there")


def test_no_dot_is_missed_where_the_source_has_none() -> None:
    plain = KERNEL.replace(b"tl.dot(x, x)", b"x + x")
    assert compiled.findings([replace(FINE, tensor_cores=False)], plain, "k.py") == ()


def audited(evidence: Evidence) -> tuple[Audit, str]:
    assert evidence.judged is not None
    plain = Audit((engine.audit_bytes(KERNEL, "k.py"),), "3.7.1")
    found = compiled.findings(evidence.judged.report.compiled, KERNEL, "k.py")
    whole = engine.with_more(plain, found, KERNEL)
    return whole, report.to_markdown(whole, tree=False, evidence=evidence)


def test_the_report_has_what_running_brought() -> None:
    spilled = replace(PASSED, compiled=(FINE, replace(FINE, spilled_bytes=64, constants={"BLOCK": 128})))
    audit, text = audited(Evidence(Verified("k.py", "0", spilled), precision_bound=4.0))
    for told in (
        "registers spill to memory** (compiled-spills)",
        "| k | sm_90 | fp16, BLOCK=64, num_warps=4, num_stages=3 | 32 | 0 | 0 | 1024 | 4x128 | 1x128 | yes | 100 % |",
        "red zones: intact in each of the 1 cases",
        "in units of the reference's own (allowed: 4) |",
        "| float16 | 0.25 | 1.5 |",
        "From source and compiling and running.",
    ):
        assert told in text, told
    results = json.loads(to_sarif(audit))["runs"][0]
    ids = [rule["id"] for rule in results["tool"]["driver"]["rules"]]
    assert all(ids[one["ruleIndex"]] == one["ruleId"] for one in results["results"]) and "compiled-spills" in ids


def test_what_touched_a_red_zone_is_named() -> None:
    case = replace(CASE, status=Status.OUT_OF_BOUNDS, detail="wrote behind y\nmore")
    failed = Report(Status.OUT_OF_BOUNDS, "1 failed", cases=(case,), expected_cases=1, interpreted=True)
    _, text = audited(Evidence(Verified("k.py", "0", failed)))
    assert "red zones: touched in 1 of 1 cases, first in float16-M1xN7: wrote behind y" in text
    assert "Not compiled: only what the judge lets through is." in text


def test_without_an_op_it_is_said_that_nothing_was_compiled() -> None:
    plain = Audit((engine.audit_bytes(KERNEL, "k.py"),), "3.7.1")
    text = report.to_markdown(plain, tree=False)
    assert "Not compiled: for which types and sizes" in text and "From source alone." in text


def test_a_comment_silences_what_compiling_brought_too() -> None:
    silenced = KERNEL.replace(b"other=0.0)", b"other=0.0)  # audit: ignore compiled-uncoalesced strided by contract")
    found = compiled.findings([replace(FINE, uncoalesced=(9,))], silenced, "k.py")
    whole = engine.with_more(Audit((engine.audit_bytes(silenced, "k.py"),), ""), found, silenced)
    assert "compiled-uncoalesced" not in {one.rule for one in whole.findings}
    assert "strided by contract" in {one.reason for one in whole.files[0].silenced}


def test_a_missing_tool_is_said_in_the_report() -> None:
    _, text = audited(Evidence(Verified("k.py", "0", PASSED), sanitized=Sanitized(missing="it is not here")))
    assert "## Sanitized\n\nit is not here." in text
