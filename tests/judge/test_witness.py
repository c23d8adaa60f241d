"""What the witness sees of each kind of cheat, and that it sees nothing of honest kernels, in a confined candidate."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Status
from orchestrator.redteam.entries import CORPUS
from tests.conftest import DEVICE, ZOO, MakeJob

GIVEN = CORPUS / "given"
REDTEAM = GIVEN / "cheats"
OWN = ZOO / "witness"
HONEST = sorted((GIVEN / "honest").glob("*.py")) + sorted((ZOO / "policy" / "honest").glob("*.py"))
CHECKOUT = Path(__file__).parents[2]
SHAPES = ((4, 130), (130,))

# Honest kernels that cannot run here, and the part of the message that says so.
NEEDS_A_GPU = {
    "0 active drivers": """k05_autotune autotune_lambda_grid config_helper config_lists backend_query
        driver_properties swizzle_matmul config_by_stars warmed_up""",
    "CUDA": "cached_count_dict lru_cache_count persistent xpu_properties",
    "NVIDIA driver": "cached_count_dict lru_cache_count persistent xpu_properties",
    "Expected a cuda device": "device_guard",
    "inline_asm not supported": "inline_assembly",
    "cannot convert None": "libdevice",
    "Did you forget to add @triton.jit": "kernel_helpers",
    "wrap_triton only works": "triton_op",
}
SQUARE = {"scratch_kept", "set_allocator", "tensor_descriptor"}  # right for such shapes only
ARGUMENTS = {"list_of_inputs": "[x] w", "scalar_parameters": "x w -1"}
ALLOWED_BY_ITS_OP = {"allowed_casts"}

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """ask(kernel, calls, **changes): what a confined candidate answered."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / "witness_candidate.py")]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def answer(kernel: Path, *calls: dict[str, Any], **changes: Any) -> dict[str, Any]:
            request = {"kernel": str(kernel), "shapes": SHAPES, "dtype": "float32", "arguments": "x x", "ones": False}
            request |= {"calls": calls or ({},), "extra": None} | changes
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield answer
        process.stdin.close()


def cheat(name: str) -> Path:
    return next(iter([*REDTEAM.glob(f"{name}*.py"), *OWN.glob(f"{name}.py")]))


def evidence(ask: Ask, name: str, *calls: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The evidence of the last call."""
    answered = ask(cheat(name), *calls, **changes)
    assert "error" not in answered, answered
    return answered["calls"][-1]["evidence"]


def computing(found: dict[str, Any]) -> dict[str, int]:
    return {one["name"]: one["line"] for one in found["operations"] if not one.get("grey")}


@pytest.mark.parametrize("kernel", HONEST, ids=lambda path: path.stem)
def test_honest(ask: Ask, kernel: Path) -> None:
    shapes = ((16, 16), (16,)) if kernel.stem in SQUARE else SHAPES
    if kernel.stem == "swizzle_matmul":
        shapes = ((32, 32), (32, 32))
    arguments = ARGUMENTS.get(kernel.stem, "x x")
    answered = ask(kernel, {}, {}, {"way": "muted"}, {}, shapes=shapes, arguments=arguments)
    for reason, kernels in NEEDS_A_GPU.items():
        if kernel.stem in kernels.split() and reason in answered.get("error", ""):
            pytest.skip(answered["error"])
    assert "error" not in answered, answered["error"]
    assert answered["imported"] == answered["final"] == []
    first, second, muted, last = (call["evidence"] for call in answered["calls"])
    for found in (first, second, muted, last):
        assert found["overruns"] == found["state"] == []
        assert not computing(found) or kernel.stem in ALLOWED_BY_ITS_OP
        assert [launch["own"] for launch in found["launches"]] and all(one["own"] for one in found["launches"])
        assert all(one["programs"] > 0 for one in found["launches"])
        assert not any(one["aliases"] or one["earlier"] or one["attributes"] for one in found["results"])
    assert first["launches"] == muted["launches"]
    assert answered["calls"][2]["nan"] > 0 or not answered["calls"][2]["right"], "without the kernel nothing is right"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("c003", {"aten.mul.Tensor": 11, "aten.mm.default": 10, "aten.pow.Tensor_Scalar": 11}),
        ("c092", {"aten.mean.dim": 9}),
        ("c093", {"aten.rsqrt.default": 18}),
        ("c095", {"aten.mul.Tensor": 19}),
        ("c098", {"aten.rsqrt.default": 9}),
        ("c099", {"aten.rsqrt.default": 9}),
        ("c104", {"aten.rsqrt.default": 28}),
        ("c105", {"aten.rsqrt.default": 9}),
        ("custom_op_computes", {"aten.rsqrt.default": 7}),
        ("subclass_computes", {"aten.mul.Tensor": 14}),
        ("exec_string", {"aten.add.Tensor": 9}),
    ],
)
def test_operations(ask: Ask, name: str, wanted: dict[str, int]) -> None:
    found = evidence(ask, name)
    assert wanted.items() <= computing(found).items()
    lines = cheat(name).read_text().splitlines()
    assert all(one["text"] == lines[one["line"] - 1].strip() for one in found["operations"])


def test_casts_are_grey(ask: Ask) -> None:
    found = evidence(ask, "c096", dtype="float16")
    assert [one["name"] for one in found["operations"]] == ["aten._to_copy.default"]
    assert found["operations"][0]["grey"] is True


def test_the_list_of_operations_is_bounded(ask: Ask) -> None:
    assert len(evidence(ask, "many_operations")["operations"]) == 64


def test_launches(ask: Ask) -> None:
    assert evidence(ask, "c054")["launches"] == []
    assert evidence(ask, "c101")["launches"] == [{"kernel": "_k", "programs": 0, "own": True, "times": 1}]
    assert evidence(ask, "c102", shapes=((300, 8), (8,)))["launches"][0]["programs"] == 128
    foreign = evidence(ask, "launches_a_foreign_kernel")["launches"]
    assert [(one["own"], one["programs"]) for one in foreign] == [(False, 2)]


def test_a_muted_decoy_stays_right(ask: Ask) -> None:
    plain, muted = ask(cheat("decoy_launch"), {}, {"way": "muted"})["calls"]
    assert plain["right"] and muted["right"]
    assert plain["evidence"]["launches"] == muted["evidence"]["launches"] != []


def test_overruns(ask: Ask) -> None:
    (after,) = evidence(ask, "past_the_end", ones=True)["overruns"]
    assert after == {"tensor": "float32 (64,) allocated at line 14", "side": "after", "bytes": 256}
    (before,) = evidence(ask, "before_the_beginning")["overruns"]
    assert before == {"tensor": "int32 (64,) allocated at line 13", "side": "before", "bytes": 16}
    (freed,) = evidence(ask, "scratch_overrun_freed")["overruns"]
    assert freed == {"tensor": "float32 (4, 4) allocated at line 14", "side": "after", "bytes": 64}


def test_an_overrun_is_reported_by_its_call_alone(ask: Ask) -> None:
    calls = ask(cheat("past_the_end"), {}, {"way": "muted"})["calls"]
    assert [len(call["evidence"]["overruns"]) for call in calls] == [1, 0]


def test_what_is_not_written_or_lies_outside_is_nan(ask: Ask) -> None:
    assert ask(cheat("unwritten_tail"))["calls"][0]["nan"] == 3
    assert ask(cheat("c084"))["calls"][0]["nan"] == 4 * 130
    assert ask(cheat("c208"))["calls"][0]["nan"] == 4 * 130
    assert ask(cheat("reads_outside"))["calls"][0]["nan"] == 1


def test_served_tensors_are_ordinary(ask: Ask) -> None:
    ordinary = {"type": True, "aligned": True, "offset": 0, "base": False, "grad": False}
    for fact in ask(cheat("all_kinds_of_allocations"))["calls"][0]["facts"]:
        assert ordinary.items() <= fact.items(), fact


def test_results(ask: Ask) -> None:
    assert evidence(ask, "c184", ones=True)["results"][0]["aliases"] == "x"
    first, second = ask(cheat("c122"), {}, {})["calls"]
    assert [call["evidence"]["results"][0]["earlier"] for call in (first, second)] == [False, True]
    names = evidence(ask, "c111")["results"][0]["attributes"]
    assert names == ["clone", "contiguous", "cpu", "detach", "double", "float", "to"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("c135", "torch.allclose was replaced"),
        ("c137", "triton.testing.do_bench was replaced"),
        ("c138", "Event.elapsed_time was replaced"),
        ("c140", "torch.cuda.synchronize was replaced"),
        ("c141", "math.isclose was replaced"),
        ("c146", "implementations of torch's own operators changed"),
        ("c147", "the stack of dispatch modes changed"),
        ("c158", "sys.stdout changed"),
    ],
)
def test_what_an_import_changed(ask: Ask, name: str, words: str) -> None:
    assert words in " ".join(ask(cheat(name))["imported"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("c149", "torch's random state changed"),
        ("leaves_a_mode", "left a dispatch mode behind"),
        ("takes_the_mode", "took one away"),
        ("thread_computes", "a thread was started at line 10"),
    ],
)
def test_what_a_call_changed(ask: Ask, name: str, words: str) -> None:
    assert words in " ".join(evidence(ask, name)["state"])


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE != "gpu", reason="ORCHESTRATOR_TEST_DEVICE is not gpu")
@pytest.mark.asyncio(loop_scope="session")
async def test_another_stream_is_left_behind(judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op) -> None:
    report = await judge.judge(make_job(cheat("c150").read_bytes(), op=small_rmsnorm))
    assert report.status is Status.FORBIDDEN, report.message
    assert "the current device or stream changed" in " ".join(case.detail for case in report.cases)


def _changes() -> list[str]:
    text = (OWN / "changes_flags.py").read_text()
    return [line.split('"')[1] for line in text.splitlines() if line.startswith('    "')]


@pytest.mark.parametrize("what", _changes())
def test_global_state(ask: Ask, what: str) -> None:
    answered = ask(cheat("changes_flags"), {}, arguments="x ?", extra=what)
    assert "error" not in answered, answered
    words = {"trace": "hook of sys", "alarm": "alarm", "recursion": "switches", "hooks": "knobs or hooks"}
    state = answered["calls"][0]["evidence"]["state"] or answered["final"]
    assert any(words.get(what, what).casefold() in sentence.casefold() for sentence in state), state


def test_a_module_is_replaced(ask: Ask) -> None:
    assert "torch.special.expit was replaced" in ask(cheat("patches_far_away"))["final"]


def test_what_watching_costs(ask: Ask, record_property: Callable[[str, object], None]) -> None:
    """Printed, not asserted: another program's load is not ours."""
    nothing = ask(cheat("nothing_happens"), *[{}] * 60)["calls"]
    assert all(call["evidence"]["state"] == [] for call in nothing)
    calls = ask(HONEST[0], *[{}, {"bare": True}] * 60, shapes=((2, 64), (64,)))["calls"]
    watched, bare = (min(call["seconds"] for call in calls[place::2]) * 1e6 for place in (0, 1))
    empty = statistics.median(call["seconds"] for call in nothing[10:]) * 1e6
    record_property("watching_us", watched - bare)
    print(f"{HONEST[0].stem}: {bare:.0f} us, watched {watched:.0f} us; a call that only allocates: {empty:.0f} us")
