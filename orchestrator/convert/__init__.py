"""From code that exists to an op's folder: cut out, called on examples, varied, written down.

Owns the order of the steps. Reads code as syntax trees; what runs it is the probe, a process of its own without keys
(`orchestrator.judge.convert`). Nothing of the source is changed, and a folder appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator import opcheck
from orchestrator.convert import backward, begin, cases, extract, flops, gradients, record, style, vary, write
from orchestrator.convert.backward import Backward, Way
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
    backward: Way | None = None

    @property
    def backward_place(self) -> Path:
        """The folder of the op whose results are its gradients, where there is to be one."""
        return self.place.with_name(f"{self.place.name}_backward")


@dataclass(frozen=True)
class Made:
    """An op as it was written, and what became of its decoys."""

    op: Op
    check: OpCheck


async def convert(wanted: Wanted, tell: Tell, check: Check) -> tuple[Made, ...]:
    """The op's folder, written, whether its own checker turned out good enough or not; then its backward op's, if any.

    Raises UsageError with what is missing and how to give it; nothing is written then.
    """
    styles = {f"like/{name}": text for name, text in style.shown(wanted.like, os.environ, tell).items()}
    async with probing(wanted.limit_s) as probe:
        draft = await drafted(wanted, probe, tell)
        made = await gradients.made(wanted.backward, draft, probe) if wanted.backward else None
    sounded = [await _sound(one, check, tell) for one in (draft, made and made.op) if one]
    places = (wanted.place, wanted.backward_place)
    for at, (place, (one, _)) in enumerate(zip(places, sounded, strict=False)):
        write.folder(_files(one, None if at else made) | styles, place)
        tell(f"wrote {place}: {record.summary(one)}")
    if made:
        kernels = " and ".join(one.name for one, _ in sounded)
        tell(f"gradients: export {kernels}, copy {wanted.place / backward.MODULE}, `from autograd import {draft.name}`")
    return tuple(
        Made(load(place.name, place.parent), result) for place, (_, result) in zip(places, sounded, strict=False)
    )


async def _sound(draft: Draft, check: Check, tell: Tell) -> tuple[Draft, OpCheck]:
    draft, result = await sound(draft, check)
    tell(opcheck.headline(result))
    return draft, result


def _files(draft: Draft, made: Backward | None) -> dict[str, str]:
    """The files of the op's folder; of an op that has a backward pass autograd.py, of gradients their decoys."""
    files = write.files(draft, record.render(draft, backward.record(made, draft) if made else ""))
    own = {"decoys.py": backward.decoys(draft)} if draft.forward else {}
    return files | own | ({backward.MODULE: made.module} if made else {})


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
    return await flops.counted(await cases.chosen(draft, probe), probe)


async def _agree(draft: Draft, probe: Prober) -> None:
    """The cut code must give what the original gives."""
    if why := await probe.agrees(draft):
        raise UsageError(f"{draft.cut.target.name} cannot be cut out of its file: {why}")
