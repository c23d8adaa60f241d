"""Launch parameters of a kernel file: which are worth trying, which won, and how the winner is written into the source.

Pure: text and figures in, text out. Only what the file says plainly is changed: launches that name their kernel, with a
literal or nothing where the parameter is. A kernel that is autotuned chooses for itself, and is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator import source
from orchestrator.judge.timing import statistics
from orchestrator.measured import AS_WRITTEN, Fastest, Launch, LaunchTimings, Swept
from orchestrator.records import Finding
from orchestrator.source import Source

_WARPS = (1, 2, 4, 8, 16, 32)
_STAGES = (1, 2, 3, 4)
_CLEARLY = 1.03  # times as fast, in a few replays


@dataclass(frozen=True)
class Row:
    """One way to launch. `ratio` is its time over that of the file as written: below 1 is faster."""

    way: LaunchTimings
    ratio: float


@dataclass(frozen=True)
class _Edit:
    """Bytes of the file from `begin` to `end`, and what stands there instead."""

    begin: int
    end: int
    text: str


class Stays(Exception):
    """Why the launch parameters of a file stay as they are, in words."""


def ways(kernel: bytes, filename: str) -> tuple[Launch, ...]:
    """The launch parameters to try: every number of warps, and of stages where a kernel has a loop to pipeline.

    Raises Stays where there is nothing to override.
    """
    found = _read(kernel, filename)
    if any(name.split(".")[-1] == "autotune" for one in found.kernels for name in one.decorators):
        raise Stays("the kernel is autotuned and chooses for itself")
    loops = any(isinstance(node, ast.For | ast.While) for one in found.kernels for node in ast.walk(one.node))
    stages = (None, *_STAGES) if loops else (None,)
    return tuple(Launch(warps, number) for warps in _WARPS for number in stages)


def rows(swept: Swept) -> tuple[Row, ...]:
    """The ways that work, fastest first, over all shapes."""
    written = swept.ways[0].latencies_us
    working = [way for way in swept.ways if way.followed]
    found = [
        Row(way, statistics.geomean([us / own for us, own in zip(way.latencies_us, written, strict=True)]))
        for way in working
    ]
    return tuple(sorted(found, key=lambda row: row.ratio))


def elsewhere(swept: Swept) -> tuple[Fastest, ...]:
    """Shapes at which some way is clearly faster than the file as written, the largest gain first."""
    gaining = [one for one in swept.fastest if one.written_us >= _CLEARLY * one.latency_us]
    return tuple(sorted(gaining, key=lambda one: one.latency_us / one.written_us))


def chosen(swept: Swept, margin: float) -> Launch | None:
    """The way that is worth writing down; None where the file as it is keeps up with all of them.

    Of those that cannot be told apart from the fastest, the one that changes least.
    """
    every = rows(swept)
    limit = min(1 / (1 + margin), every[0].ratio * (1 + margin))
    good = [row.way.launch for row in every if row.ratio <= limit and row.way.launch != AS_WRITTEN]
    return min(good, key=lambda launch: len(launch.options), default=None)


def rewritten(kernel: bytes, filename: str, launch: Launch) -> bytes:
    """The file with these options in every launch. Raises Stays where one does not say them plainly."""
    found = _read(kernel, filename)
    if not found.launches:
        raise Stays("no launch names its kernel directly")
    text = found.text.encode()
    begins = _line_begins(text)
    edits = [edit for one in found.launches for edit in _edits(one.call, launch, text, begins)]
    for edit in sorted(edits, key=lambda edit: edit.begin, reverse=True):
        text = text[: edit.begin] + edit.text.encode() + text[edit.end :]
    if _without(ast.parse(text), launch) != _without(found.tree, launch):
        raise Stays("its launches are written in a way that could not be edited")
    return text


def _read(kernel: bytes, filename: str) -> Source:
    found = source.read(kernel, filename)
    if isinstance(found, Finding):
        raise Stays(found.message)
    return found


def _edits(call: ast.Call, launch: Launch, text: bytes, begins: list[int]) -> Iterator[_Edit]:
    if any(keyword.arg is None for keyword in call.keywords):
        raise Stays(f"the launch in line {call.lineno} is given a dictionary of options")
    said = {keyword.arg: keyword.value for keyword in call.keywords}
    new = {name: value for name, value in launch.options.items() if name not in said}
    for name, value in launch.options.items():
        if (node := said.get(name)) is None:
            continue
        if not isinstance(node, ast.Constant):
            raise Stays(f"{name} is no literal in the launch in line {call.lineno}")
        yield _Edit(*_span(node, begins), str(value))
    if new:
        yield _appended(call, ", ".join(f"{name}={value}" for name, value in new.items()), text, begins)


def _appended(call: ast.Call, options: str, text: bytes, begins: list[int]) -> _Edit:
    """The options before the call's closing bracket."""
    close = _span(call, begins)[1] - 1
    given: tuple[ast.expr | ast.keyword, ...] = (*call.args, *call.keywords)
    last = max((_span(node, begins)[1] for node in given), default=None)
    between = b"," if last is None else re.sub(rb"#[^\n]*", b"", text[last:close])
    return _Edit(close, close, options if b"," in between else f", {options}")


def _span(node: ast.expr | ast.keyword, begins: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset


def _line_begins(text: bytes) -> list[int]:
    """Where each line begins, as Python counts lines."""
    return [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", text))]


def _without(tree: ast.AST, launch: Launch) -> str:
    """The tree as text, with none of these options in any call."""
    copy = ast.parse(ast.unparse(tree))
    for node in ast.walk(copy):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in launch.options]
    return ast.dump(copy)
