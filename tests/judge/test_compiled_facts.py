"""What is read from compiled kernels: really compiled ones, text of each kind, and what is unknown stays so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from orchestrator.judge.ahead import facts
from orchestrator.records import Compiled, from_json, to_json

TARGETS = ("sm_80", "sm_90", "gfx942")
SOURCE = """
import triton
import triton.language as tl


@triton.jit
def copies(X, Y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + at, tl.load(X + at))


@triton.jit
def multiplies(A, B, C, K, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for begin in range(0, K, BLOCK):
        a = tl.load(A + at[:, None] * K + begin + at[None, :])
        total = tl.dot(a, tl.load(B + (begin + at)[:, None] * BLOCK + at[None, :]), total)
    tl.store(C + at[:, None] * BLOCK + at[None, :], total)


@triton.jit
def rounds(A, B, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(A + at)
    tl.store(B + at, tl.dot(a, a))


@triton.jit
def rounds_thrice(A, B, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(A + at)
    tl.store(B + at, tl.dot(a, a, input_precision="tf32x3"))


@triton.jit
def rounds_nothing(A, B, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(A + at)
    tl.store(B + at, tl.dot(a, a, input_precision="ieee"))


@triton.jit
def keeps_much(X, Y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    rows = tl.load(X + at[:, None] * BLOCK + at[None, :])
    tl.store(Y + at[:, None] * BLOCK + at[None, :], rows / tl.sum(tl.sum(rows, 0), 0))


@triton.jit
def turns(X, Y, K, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = tl.load(X + at[:, None] * BLOCK + at[None, :])
    for begin in range(0, 2):
        tile += tl.load(X + at[:, None] * K + (begin * BLOCK + at)[None, :] * K)  # apart in both axes
    where = tl.load(Y + at).to(tl.int32)
    tile += tl.load(X + where[:, None] * K + at[None, :])  # gathered rows
    tile += tl.load(X + where[None, :] + at[:, None] * 0)  # gathered columns: not known
    tl.store(Y + at[:, None] + at[None, :] * BLOCK, tile)  # the compiler turns the tile
    tl.store(Y + at * 4, tl.sum(tile, 0))  # every fourth


@triton.jit
def by_rows(X, Y, K, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = tl.load(X + at[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
    tl.store(Y + at, tl.max(tile, 1))


@triton.jit
def by_eighths(X, Y, K, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = tl.load(X + at[:, None] * (K * 8) + at[None, :], mask=at[None, :] < K * 8, other=0.0)
    tl.store(Y + at, tl.max(tile, 1))
"""
ALIGNED = {"aligned": "D", "anyhow": ""}  # Triton's letter for "divisible by 16"
SIZES = {"copies": ("XY", "*fp16", 1024), "multiplies": ("ABC", "*fp16", 64), "keeps_much": ("XY", "*fp32", 256)}
SIZES |= {name: ("AB", "*fp32", 32) for name in ("rounds", "rounds_thrice", "rounds_nothing")}
SIZES["turns"] = ("XY", "*fp32", 64)
SIZES |= {name: ("XY", "*fp16", 64) for name in ("by_rows", "by_eighths")}
APART = [number for number, line in enumerate(SOURCE.splitlines(), 1) if "apart" in line or "every fourth" in line]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compiled]:
    """Each kernel for each target, by "name how target"; with arguments that Triton knows to be aligned, or not."""
    file = tmp_path_factory.mktemp("facts") / "kernels.py"
    file.write_text(SOURCE)
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2]), "TRITON_CACHE_DIR": tempfile.mkdtemp()}
    done = subprocess.run(
        [sys.executable, __file__, str(file)], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: from_json(Compiled, text) for name, text in json.loads(done.stdout.splitlines()[-1]).items()}


@pytest.mark.parametrize("target", TARGETS)
def test_aligned_rows_are_loaded_wide_and_others_element_by_element(compiled: dict[str, Compiled], target: str) -> None:
    wide, narrow = compiled[f"copies aligned {target}"], compiled[f"copies anyhow {target}"]
    share = 64 if target.startswith("gfx") else 128  # 1024 halves over the lanes of 4 warps
    assert wide.load_bits == wide.store_bits == {share: 1}
    assert narrow.load_bits == narrow.store_bits and set(narrow.load_bits or ()) == {16}
    assert wide.tensor_cores is False and wide.spilled_bytes == 0 and wide.occupancy == 1.0


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_multiple_of_eight_are_loaded_wide_where_the_kernel_multiplies_by_eight(
    compiled: dict[str, Compiled], target: str
) -> None:
    """What the prompts say: Triton knows of a size only whether it is a multiple of 16."""
    assert set(compiled[f"by_rows aligned {target}"].load_bits or ()) == {16}
    assert set(compiled[f"by_eighths aligned {target}"].load_bits or ()) == {128}


@pytest.mark.parametrize("target", TARGETS)
def test_a_product_of_halves_is_seen_to_be_on_the_tensor_cores(compiled: dict[str, Compiled], target: str) -> None:
    found = compiled[f"multiplies aligned {target}"]
    assert found.tensor_cores and found.shared_bytes and found.registers and found.load_bits
    assert max(found.load_bits) == 128, "also where loads are asynchronous copies"
    assert found.occupancy is not None and 0 < found.occupancy < 1


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_product_of_float32_in_tf32_is_seen(compiled: dict[str, Compiled], target: str) -> None:
    """AMD's compiler multiplies exactly unless told otherwise."""
    assert compiled[f"rounds aligned {target}"].tf32
    for name in ("rounds_thrice", "rounds_nothing", "multiplies", "copies"):
        assert compiled[f"{name} aligned {target}"].tf32 is False, name


@pytest.mark.parametrize("target", TARGETS)
def test_what_does_not_fit_into_registers_is_spilled(compiled: dict[str, Compiled], target: str) -> None:
    found = compiled[f"keeps_much aligned {target}"]
    assert found.spilled_bytes and found.registers


@pytest.mark.parametrize("target", TARGETS)
def test_accesses_whose_lanes_are_apart_are_named_by_line(compiled: dict[str, Compiled], target: str) -> None:
    found = compiled[f"turns aligned {target}"]
    assert list(found.uncoalesced or ()) == APART, "neither gathers nor what the compiler has turned itself"
    assert compiled[f"multiplies aligned {target}"].uncoalesced == ()


def test_it_says_for_what_it_was_compiled(compiled: dict[str, Compiled]) -> None:
    found = compiled["multiplies aligned sm_90"]
    assert found.types == {"A": "*fp16", "B": "*fp16", "C": "*fp16", "K": "i32"} and found.constants == {"BLOCK": 64}
    assert found.line > 1 and found.stack_bytes == 0
    assert (compiled["keeps_much aligned sm_90"].stack_bytes or 0) > 0, "what is spilled lies on the stack"


@pytest.mark.parametrize(
    ("line", "loads", "stores"),
    [
        ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", {128: 1}, {}),
        ("ld.global.L1::evict_last.L2::cache_hint.v2.b64 { %rd2, %rd3 }, [ %rd1 ], %rd9;", {128: 1}, {}),
        ("ld.volatile.global.b16 %rs1, [%rd1];", {16: 1}, {}),
        ("ld.param.b64 %rd1, [k_param_0];", {}, {}),
        ("ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r9];", {}, {}),
        ("st.global.L1::evict_first.b8 [%rd1], %rs1;", {}, {8: 1}),
        ("cp.async.ca.shared.global [ %r19 + 0 ], [ %rd7 + 0 ], 0x8, %r20;", {64: 1}, {}),
        ("cp.async.cg.shared.global.L2::cache_hint [ %r19 + 0 ], [ %rd7 + 0 ], 16, %r20, %rd3;", {128: 1}, {}),
    ],
)
def test_widths_of_instructions(line: str, loads: dict[int, int], stores: dict[int, int]) -> None:
    found = facts.read("k", "sm_90", f"\t{line}\n", warps=4, stages=3, shared_bytes=0)
    assert (found.load_bits, found.store_bits, found.bulk_copies) == (loads, stores, 0)


def test_a_tile_by_the_copy_engine_is_counted_apart() -> None:
    line = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];"
    found = facts.read("k", "sm_90", f"{line}\ncp.async.bulk.commit_group;\n", warps=4, stages=3, shared_bytes=0)
    assert found.bulk_copies == 1 and found.load_bits == {}


def test_what_nothing_states_is_unknown() -> None:
    found = facts.read("k", "sm_90", None, warps=4, stages=3, shared_bytes=None)
    assert found == Compiled("k", "sm_90", warps=4, stages=3)
    assert facts.occupancy("sm_21", 32, 0, 4) is None


def test_the_drivers_word_is_taken_where_the_assembler_said_nothing() -> None:
    found = facts.read("k", "sm_90", "", warps=4, stages=3, shared_bytes=0, loaded=(255, 12))
    assert (found.registers, found.spilled_bytes) == (255, 48)


@pytest.mark.parametrize(
    ("target", "registers", "shared_bytes", "warps", "share"),
    [
        ("sm_90", 32, 0, 4, 1.0),
        ("sm_90", 255, 0, 4, 0.125),  # 8160 registers a warp, in steps of 256: 2 warps in each quarter
        ("sm_90", 64, 0, 8, 0.5),
        ("sm_90", 32, 100_000, 4, 0.125),  # two programs share 228 KiB
        ("sm_90", 16, 0, 1, 0.5),  # 32 programs at most
        ("gfx942", 128, 0, 4, 0.5),
        ("gfx942", 32, 40_000, 4, 0.125),
        ("sm_90", 255, 0, 32, 0.0),  # cannot be launched at all
    ],
)
def test_occupancy(target: str, registers: int, shared_bytes: int, warps: int, share: float) -> None:
    assert facts.occupancy(target, registers, shared_bytes, warps) == pytest.approx(share)


def compile_all(file: Path) -> dict[str, str]:
    """In a process where Triton compiles."""
    from orchestrator.judge.ahead import compiling
    from orchestrator.judge.ahead.records import Specialization

    functions, found = compiling.load(file), {}
    for kernel, line in functions:
        if kernel not in SIZES:
            continue
        pointers, kind, size = SIZES[kernel]
        names = [*pointers, *(["K"] if kernel in ("multiplies", "turns", "by_rows", "by_eighths") else [])]
        types = dict.fromkeys(pointers, kind) | dict.fromkeys(names[len(pointers) :], "i32") | {"BLOCK": "constexpr"}
        for how, letters in ALIGNED.items():
            rows = kernel.startswith("by_")  # their size is a multiple of 8 and not of 16
            attributes = [[[place], letters] for place in range(len(pointers if rows else names)) if letters]
            one = Specialization(kernel, line, types, [[[len(names)], size]], attributes, {"num_warps": 4})
            for target in TARGETS if kernel == "copies" or letters else ():
                if kernel == "rounds_thrice" and target.startswith("gfx"):
                    continue  # AMD has no such product
                result = compiling.compile_one(functions, one, target)
                assert result.compiled is not None, result.error
                found[f"{kernel} {how} {target}"] = to_json(result.compiled, indent=None)
    return found


if __name__ == "__main__":
    print(json.dumps(compile_all(Path(sys.argv[1]))))
