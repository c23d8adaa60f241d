"""Each check stops a cheat that passes when that check is off, and every check lets an honest kernel pass.

The policy is not asked, and for each cheat all other checks are switched off: what stops it is the one check.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from orchestrator.errors import JudgeError
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.judge.checks.launches import launches
from orchestrator.ops import Op
from orchestrator.records import Limits, Status
from orchestrator.redteam.entries import CORPUS
from tests.conftest import DEVICE, ZOO, MakeJob, visible, zoo_kernel

pytestmark = pytest.mark.asyncio(loop_scope="session")
EVERY = sorted((ZOO / "checks").glob("*.py"))
CHEATS = [path for path in EVERY if visible(path)]
CHECKS = {
    *("host_operations", "launches", "inputs_unchanged", "red_zones", "overruns", "own_storage", "global_state"),
    *("fresh_values", "changed_element", "deterministic", "zone_reads", "earlier_result", "steady_state"),
    *("program_order", "recycled_memory", "guarded_loads"),
    *("muted_launches", "every_configuration", "other_warps", "device_trace", "compiles"),
}


def header(cheat: Path) -> tuple[str, Status]:
    """The check that stops it and how it ends, from its first line."""
    match = re.search(r"\| only: (\w+) \| expect: (\w+)", cheat.read_text().splitlines()[0])
    assert match, cheat
    return match[1], Status(match[2])


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda path: path.stem)
async def test_the_check_alone_stops_the_cheat(
    judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op, cheat: Path
) -> None:
    check, expected = header(cheat)
    report = await judge.judge(make_job(cheat.read_bytes(), op=small_rmsnorm, skip=tuple(sorted(CHECKS - {check}))))
    assert report.status is expected, f"{report.message}\n{report.detail}"


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda path: path.stem)
async def test_without_any_check_the_cheat_passes(
    judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op, cheat: Path
) -> None:
    """Otherwise the test above shows nothing of the check."""
    report = await judge.judge(make_job(cheat.read_bytes(), op=small_rmsnorm, skip=tuple(sorted(CHECKS))))
    assert report.status is Status.PASSED, f"{report.message}\n{report.detail}"
    assert report.notes == (f"checks switched off: {', '.join(sorted(CHECKS))}",)


@pytest.mark.parametrize(
    ("input_", "result", "launched"),
    [
        (torch.ones(3, 0), torch.zeros(3, 4), True),  # a product over nothing, allocated as it is to be
        (torch.ones(3, 0), torch.ones(3, 4), False),
        (torch.ones(3, 2), torch.zeros(3, 4), False),
        (torch.ones(0, 2), torch.zeros(0, 4), True),
    ],
)
async def test_zeros_of_nothing_need_no_launch(input_: torch.Tensor, result: torch.Tensor, launched: bool) -> None:
    call = Call({"x": input_}, True, {}, 0, (result,), {"launches": []}, {})
    with nullcontext() if launched else pytest.raises(CandidateFailed, match="no kernel of this file was launched"):
        launches(call)


@pytest.mark.parametrize(
    ("cheat", "allowed"),
    [
        ("torch_casts", (".to",)),
        ("torch_reads_back", (".item",)),
        ("torch_computes", (".to", ".square", ".mean", "torch.rsqrt", "+", "*")),
    ],
)
async def test_what_the_op_allows_its_host_code_is_no_fault(
    judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op, cheat: str, allowed: tuple[str, ...]
) -> None:
    kernel = (ZOO / "checks" / f"{cheat}.py").read_bytes()
    skip = tuple(sorted(CHECKS - {"host_operations"}))
    report = await judge.judge(make_job(kernel, op=small_rmsnorm, skip=skip, host_operations=allowed))
    assert report.status is Status.PASSED, f"{report.message}\n{report.detail}"
    fewer = make_job(kernel, op=small_rmsnorm, skip=skip, host_operations=allowed[:-1])
    assert (await judge.judge(fewer)).status is Status.FALLBACK


async def test_every_check_has_its_cheat() -> None:
    assert {header(cheat)[0] for cheat in EVERY} == CHECKS


# The slower of them to compile ahead belong to the long check; the ordinary run has a sample of both corpora besides.
SLOW = {"k05_autotune", "k09_split_n", "k11_try_import", "k13_persistent"}
HONEST = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.long] if path.stem in SLOW else [])
    for path in sorted((CORPUS / "given" / "honest").glob("*.py"))
]


@pytest.mark.parametrize("kernel", HONEST)
async def test_an_honest_kernel_passes_all_checks(judge: LocalExecutor, make_job: MakeJob, kernel: Path) -> None:
    compile_s = 8 if DEVICE == "cpu" else 120
    limits = Limits(call_s=60, total_s=280, compile_s=compile_s)  # autotune's first configuration may be a slow one
    report = await judge.judge(make_job(kernel.read_bytes(), limits=limits))
    assert report.status is Status.PASSED, f"{report.message}\n{report.detail}"


@pytest.mark.parametrize("name", ["multi_row_loop", "block_pointers", "block_pointers_advance", "tensor_descriptors"])
async def test_a_mask_guards_a_load_whatever_the_interpreter_keeps_it_as(
    judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op, name: str
) -> None:
    """`(cols < N) & (row < M)` is integers there, and the mask of a block pointer or a descriptor a bare array."""
    kernel = (CORPUS / "honest" / f"{name}.py").read_bytes()
    skip = tuple(sorted(CHECKS - {"guarded_loads"}))
    report = await judge.judge(make_job(kernel, op=small_rmsnorm, skip=skip, seed=5))
    assert report.status is Status.PASSED, f"{report.message}\n{report.detail}"


@pytest.mark.parametrize("repeatable", [False, True])
async def test_atomics_may_add_in_any_order_unless_the_op_asks_for_the_same_bits(
    judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op, repeatable: bool
) -> None:
    kernel = (ZOO / "atomics_in_any_order.py").read_bytes()
    job = make_job(kernel, op=small_rmsnorm, skip=("steady_state",), seed=4, repeatable=repeatable)
    report = await judge.judge(job)
    assert report.status is (Status.NONDETERMINISTIC if repeatable else Status.PASSED), report.message
    assert any("add in another order" in note for note in report.notes) is not repeatable


async def test_a_check_that_does_not_exist_cannot_be_switched_off(judge: LocalExecutor, make_job: MakeJob) -> None:
    with pytest.raises(JudgeError, match="no check everything"):
        await judge.judge(make_job(zoo_kernel("good"), skip=("everything",)))
