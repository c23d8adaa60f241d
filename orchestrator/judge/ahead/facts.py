"""What a compiled kernel is, read from what Triton's compiler left of it: assembly, metadata, the assembler's log.

Pure functions over text, for a kernel that was compiled ahead and for one that was launched on a GPU alike. A figure
that nothing states stays None. Occupancy is an estimate: the programs that fit beside each other by registers, shared
memory and warps, as the vendors state their limits; what a card does with them is not in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.judge.ahead.layouts import uncoalesced
from orchestrator.records import Compiled

_PTX = re.compile(r"\b(ld|st)\.(?:[\w:]+\.)*?global(?:\.[\w:]+)*?(?:\.v(\d+))?\.[bufs](\d+)\s")
_PTX_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared[\w:.]*\s*\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")
_PTX_BULK = re.compile(r"\bcp\.async\.bulk\.(?!commit_group|wait_group)[\w:.]*global")
_PTX_TENSOR = re.compile(r"\b(?:mma\.sync|wmma\.mma|wgmma\.mma_async|tcgen05\.mma)\b")
_AMD = re.compile(r"\b(?:global|buffer|flat)_(load|store)_(?:lds_)?(\w+)\s")
_AMD_TENSOR = re.compile(r"\bv_s?mfma_|\bv_s?wmmac?_")
_TF32 = re.compile(r"\btt\.dot\b[^:\n]*\binputPrecision = tf32 : tensor<[\dx]*xf32\b")
_WORD, _LEAST = 32, 8  # bits


@dataclass(frozen=True)
class _Card:
    """What one multiprocessor (AMD: compute unit) has for the programs on it."""

    warps: int
    programs: int
    shared_bytes: int
    parts: int = 4  # each with registers of its own
    registers: int = 16384  # of a part, counted in threads' registers over a warp's lanes
    granule: int = 256  # registers are given to a warp in such steps
    reserved_bytes: int = 1024  # of shared memory, for each program


_SMALL, _LARGE = 102_400, 233_472
_CARDS = {
    "sm_80": _Card(warps=64, programs=32, shared_bytes=167_936),
    "sm_86": _Card(warps=48, programs=16, shared_bytes=_SMALL),
    "sm_89": _Card(warps=48, programs=24, shared_bytes=_SMALL),
    "sm_90": _Card(warps=64, programs=32, shared_bytes=_LARGE),
    "sm_100": _Card(warps=64, programs=32, shared_bytes=_LARGE),
    "sm_120": _Card(warps=48, programs=24, shared_bytes=_SMALL),
    "gfx942": _Card(warps=32, programs=32, shared_bytes=65_536, registers=512 * 64, granule=8 * 64, reserved_bytes=0),
}


def of(kernel: Any, name: str = "", log: str = "") -> Compiled:
    """The facts of a kernel as Triton's compiler returns it, or as a launch on a GPU does.

    `log` is what the assembler said (`ptxas -v`); without it the driver's word is taken, where the kernel was loaded.
    """
    metadata, assembly = kernel.metadata, kernel.asm
    target = target_name(metadata.target)
    return read(
        name or str(metadata.name),
        target,
        _text(assembly, "amdgcn" if target.startswith("gfx") else "ptx"),
        warps=metadata.num_warps,
        stages=metadata.num_stages,
        shared_bytes=metadata.shared,
        log=log,
        loaded=(getattr(kernel, "n_regs", None), getattr(kernel, "n_spills", None)),
        dialect=_text(assembly, "ttgir"),
        portable=_text(assembly, "ttir"),
    )


def read(
    kernel: str,
    target: str,
    assembly: str | None,
    *,
    warps: int,
    stages: int,
    shared_bytes: int | None,
    log: str = "",
    loaded: tuple[int | None, int | None] = (None, None),
    dialect: str | None = None,
    portable: str | None = None,
) -> Compiled:
    """The facts from the assembly's text. `loaded` is the driver's word on registers and spilled 32-bit words.

    `dialect` is the kernel in Triton's GPU dialect, `portable` in the one before it.
    """
    amd = target.startswith("gfx")
    found = (_amd if amd else _nvidia)(assembly or "")
    registers, spilled = _resources(assembly or "", log, amd)
    if registers is None and loaded[0] is not None:
        registers, spilled = loaded[0], None if loaded[1] is None else 4 * loaded[1]
    return Compiled(
        kernel,
        target,
        warps=warps,
        stages=stages,
        registers=registers,
        spilled_bytes=spilled,
        shared_bytes=shared_bytes,
        load_bits=None if assembly is None else dict(sorted(found.loads.items())),
        store_bits=None if assembly is None else dict(sorted(found.stores.items())),
        bulk_copies=None if assembly is None else found.bulk,
        tensor_cores=None if assembly is None else found.tensor_cores,
        occupancy=occupancy(target, registers, shared_bytes, warps),
        stack_bytes=_number(r"\.private_segment_fixed_size:\s*(\d+)", assembly or "")
        if amd
        else _number(r"(\d+) bytes stack frame", log),
        uncoalesced=None if dialect is None else uncoalesced(dialect),
        tf32=None if portable is None else _TF32.search(portable) is not None,
    )


def target_name(target: Any) -> str:
    """The name of a compiler's target: sm_90, gfx942."""
    return f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch).split(":")[0]


def occupancy(target: str, registers: int | None, shared_bytes: int | None, warps: int) -> float | None:
    """The share of the warps a multiprocessor can hold that fit beside each other; None where a figure is unknown."""
    card = _CARDS.get(target)
    if card is None or registers is None or shared_bytes is None or warps < 1:
        return None
    lanes = 64 if target.startswith("gfx") else 32
    of_a_warp = _rounded(max(registers, 1) * lanes, card.granule)
    by_registers = card.parts * (card.registers // of_a_warp) // warps
    by_memory = card.shared_bytes // _rounded(max(shared_bytes + card.reserved_bytes, 1), 128)
    programs = min(card.programs, card.warps // warps, by_registers, by_memory)
    return programs * warps / card.warps


@dataclass(frozen=True)
class _Found:
    """Accesses to global memory by one thread's width in bits, and what else the instructions are."""

    loads: Counter[int]
    stores: Counter[int]
    bulk: int
    tensor_cores: bool


def _nvidia(assembly: str) -> _Found:
    kinds: dict[str, Counter[int]] = {"ld": Counter(), "st": Counter()}
    for kind, lanes, bits in _PTX.findall(assembly):
        kinds[kind][int(lanes or 1) * int(bits)] += 1
    kinds["ld"].update(8 * int(size, 0) for size in _PTX_COPY.findall(assembly))
    bulk = len(_PTX_BULK.findall(assembly))
    return _Found(kinds["ld"], kinds["st"], bulk, _PTX_TENSOR.search(assembly) is not None)


def _amd(assembly: str) -> _Found:
    kinds: dict[str, Counter[int]] = {"load": Counter(), "store": Counter()}
    for kind, what in _AMD.findall(assembly):
        kinds[kind][_amd_bits(what)] += 1
    return _Found(kinds["load"], kinds["store"], 0, _AMD_TENSOR.search(assembly) is not None)


def _amd_bits(what: str) -> int:
    """Of `dwordx4`, `ushort`, `b128`, `short_d16_hi` and their like."""
    if words := re.match(r"dword(?:x(\d+))?", what):
        return _WORD * int(words[1] or 1)
    if sized := re.match(r"[bui](\d+)", what):
        return int(sized[1])
    return _WORD // 2 if "short" in what else _LEAST


def _resources(assembly: str, log: str, amd: bool) -> tuple[int | None, int | None]:
    """Registers of a thread and what of them is spilled, in bytes."""
    if not amd:
        return _number(r"Used (\d+) registers", log), _number(r"(\d+) bytes spill stores", log)
    spilled = _number(r"\.vgpr_spill_count:\s*(\d+)", assembly)
    return _number(r"\.vgpr_count:\s*(\d+)", assembly), None if spilled is None else 4 * spilled


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None


def _rounded(value: int, step: int) -> int:
    return -(-value // step) * step


def _text(assembly: Mapping[str, object], kind: str) -> str | None:
    found = assembly.get(kind)
    return found if isinstance(found, str) else None
