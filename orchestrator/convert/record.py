"""CONVERTED.md: what was converted, what was inferred and from what, what could not be varied, how it is used."""

from __future__ import annotations

import hashlib

from orchestrator import resources
from orchestrator.convert.draft import Draft


def render(draft: Draft, backward: str = "") -> str:
    """The record of a conversion, for a person."""
    environment = resources.environment(resources.templates() / "convert")
    data = draft.cut.target.path.read_bytes()
    return environment.get_template("CONVERTED.md.j2").render(
        draft=draft, sha256=hashlib.sha256(data).hexdigest(), dims=dims(draft), backward=backward
    )


def dims(draft: Draft) -> str:
    """Each dim with its sizes."""
    return "; ".join(_dim(draft, name) for name in draft.dims)


def _dim(draft: Draft, name: str) -> str:
    span = draft.spans.get(name)
    if span is None or not span.varies:
        return f"{name} is {draft.sizes[name]}"
    empty = "0, and " if span.empty else ""
    step = f" in steps of {span.step}" if span.step > 1 else ""
    return f"{name} {empty}{span.low} to {span.high}{step} ({draft.sizes[name]} in the example)"


def summary(draft: Draft) -> str:
    """One line: how many shapes, and what was left out."""
    left = sum("left out" in note or "cannot be varied" in note for note in draft.notes)
    more = f", {left} left out (CONVERTED.md says why)" if left else ""
    return f"{len(draft.asked.shapes)} shapes for every machine and {len(draft.asked.large)} to time{more}"
