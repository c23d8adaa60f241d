"""From code that exists to an op's folder: cut out, called on examples, varied, written down.

Owns the order of the steps. Reads code as syntax trees; what runs it is the probe, a process of its own without keys
(`orchestrator.judge.convert`). Nothing of the source is changed, and a folder appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator import opcheck
from orchestrator.convert import begin, cases, extract, record, vary, write
from orchestrator.convert.draft import Draft
from orchestrator.convert.examples import Examples
from orchestrator.convert.extract import Target
from orchestrator.convert.prober import Prober, probing
from orchestrator.convert.sound import Check, sound
from orchestrator.errors import UsageError
from orchestrator.ops import Op, load
from orchestrator.records import OpCheck

Tell = Callable[[str], None]
_GIVEN = ("get_inputs", "get_init_inputs")  # of the file, run with the target


@dataclass(frozen=True)
class Wanted:
    """What is to be converted, from which examples, and where to."""

    target: Target
    examples: Examples
    place: Path  # the op's folder, named as the op
    like: tuple[Path, ...] = ()
    limit_s: float = 120.0


async def convert(wanted: Wanted, tell: Tell, check: Check) -> tuple[Op, OpCheck]:
    """The op's folder, written, whether its own checker turned out good enough or not.

    Raises UsageError with what is missing and how to give it; nothing is written then.
    """
    async with probing(wanted.limit_s) as probe:
        draft = await drafted(wanted, probe, tell)
    draft, result = await sound(draft, check)
    tell(opcheck.headline(result))
    styles = {f"like/{path.name}": text for path, text in _house_style(wanted.like)}
    contents = write.files(draft, record.render(draft)) | styles
    write.folder(contents, wanted.place)
    tell(f"wrote {wanted.place}: {record.summary(draft)}")
    return load(wanted.place.name, wanted.place.parent), result


async def drafted(wanted: Wanted, probe: Prober, tell: Tell) -> Draft:
    """The op as the examples and the code's own behaviour give it."""
    cut = extract.cut(wanted.target)
    tell(f"{cut.target.name}: cut from {', '.join(sorted({file.name for file in cut.files}))}")
    found = await probe.examine(extract.cut(wanted.target, _GIVEN), wanted.examples.init, wanted.examples.calls or None)
    if found.built and found.built.opaque:
        cut = extract.cut(wanted.target, keep=("get_init_inputs",))
    first = begin.shared(begin.draft(cut, found, wanted.place.name), wanted.examples)
    draft = await vary.shaped(first, found, probe)
    await _agree(draft, probe)
    tell(f"dims: {record.dims(draft)}")
    return await cases.chosen(draft, probe)


async def _agree(draft: Draft, probe: Prober) -> None:
    """The cut code must give what the original gives."""
    if why := await probe.agrees(draft):
        raise UsageError(f"{draft.cut.target.name} cannot be cut out of its file: {why}")


def _house_style(paths: tuple[Path, ...]) -> list[tuple[Path, str]]:
    """Kernel files that are shown to the model, at most so many characters of them in all."""
    found: list[tuple[Path, str]] = []
    for path in paths:
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found += [(file, _kernel(file)) for file in files]
    kernels = [(file, text) for file, text in found if "triton.jit" in text]
    if paths and not kernels:
        raise UsageError(f"--like {', '.join(map(str, paths))}: no file there holds a Triton kernel (@triton.jit)")
    return kernels


def _kernel(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--like {file} cannot be read: {error}") from error
