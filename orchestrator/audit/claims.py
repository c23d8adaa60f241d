"""What a model claims of a kernel, and what testing a claim came to: records, and reading them from a reply.

Owns the form of a claim. A claim that cannot be read is kept as what is wrong with it: nothing that a model said is
dropped in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from orchestrator import reply
from orchestrator.audit.findings import Part, Severity
from orchestrator.records import Parameter, Record
from orchestrator.text import printable

Fact = Literal["spills", "stack", "narrow-access", "uncoalesced", "no-tensor-cores", "low-occupancy"]
FACTS: tuple[str, ...] = get_args(Fact)  # the rules over compiled kernels, without their common prefix
MOST = 12  # claims of one review that are read
_QUOTED = 600


class Outcome(StrEnum):
    """What testing a claim came to."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class ClaimedCase(Record):
    """An input at which a kernel is said to be wrong."""

    dims: dict[str, int]
    dtype: str
    scale: float = 1.0
    values: str = "normal"
    parameters: dict[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim(Record):
    """One thing that a model says of a line."""

    line: int
    severity: Severity
    part: Part
    claim: str
    repair: str = ""
    case: ClaimedCase | None = None
    fact: Fact | None = None


@dataclass(frozen=True)
class Tested(Record):
    """A claim, and what became of it."""

    claim: Claim
    outcome: Outcome
    how: str  # what the judge saw, or why it was not asked


def read(text: str) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
    """The claims of a reply, and what is wrong with those that are none. Raises ValueError where there is no list."""
    blocks = [code for language, _, code in reply.blocks(text) if language == "json"]
    if not blocks:
        raise ValueError("it has no fenced block of json")
    try:
        content = json.loads(blocks[-1])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its block is no JSON: {printable(str(error))}") from None
    if not isinstance(content, list):
        raise ValueError("its block of json is no list")
    claims, unreadable = [], []
    for number, one in enumerate(content[:MOST], 1):
        try:
            claims.append(_claim(one))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            unreadable.append(printable(f"claim {number}: {where or 'it'}: {first['msg']}", 300))
    if len(content) > MOST:
        unreadable.append(f"{len(content) - MOST} claims beyond the first {MOST}")
    return tuple(claims), tuple(unreadable)


def _claim(content: Any) -> Claim:
    """Fields that a claim does not have are left out; texts are cut."""
    kept: Any = _known(content, Claim)
    if isinstance(kept, dict):
        kept |= {"case": _known(kept["case"], ClaimedCase)} if kept.get("case") else {"case": None}
        texts: Sequence[str] = ("claim", "repair")
        kept |= {name: printable(str(kept[name]), _QUOTED) for name in texts if name in kept}
    return TypeAdapter(Claim).validate_python(kept)


def _known(content: Any, kind: type) -> Any:
    if not isinstance(content, Mapping):
        return content
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in content.items() if name in names}
