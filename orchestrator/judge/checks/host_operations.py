"""Host code computes nothing with torch, and casts, copies and reads back nothing, but what the op allows by name.

Rests on evidence: a dispatch mode in the candidate's process records which operations its host code runs, also in grid
functions, hooks and heuristics. What Triton itself dispatches does not count, nor a copy that makes a view contiguous.
Catches: work done by torch that the policy did not see; a tensor that passes for a number there.
Cannot catch: operations run behind the dispatcher's back, or by a process that lies.
"""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.records import Status

_CASTS = "to type type_as float half double bfloat16 int long short char byte bool cpu cuda"
_DISPATCHED = {  # what the names of op.yaml come to where the dispatcher sees them, beside their own
    **dict.fromkeys(_CASTS.split(), ("_to_copy",)),
    **dict.fromkeys(("item", "tolist"), ("_local_scalar_dense",)),
    **dict.fromkeys(("matmul", "@"), ("mm", "bmm", "mv", "dot", "addmm")),
    **dict.fromkeys(("softmax", "log_softmax"), ("_softmax", "_log_softmax")),
    **{"+": ("add",), "-": ("sub", "rsub", "neg"), "*": ("mul",), "/": ("div",), "//": ("floor_divide",)},
    **{
        "%": ("remainder",),
        "**": ("pow",),
        "square": ("pow",),
        "<": ("lt",),
        "<=": ("le",),
        ">": ("gt",),
        ">=": ("ge",),
    },
    **{"==": ("eq",), "!=": ("ne",)},
}
_ALWAYS = frozenset({"arange"})  # the policy says that it was there


def host_operations(call: Call) -> None:
    """Raises CandidateFailed naming the first operation and its line."""
    allowed = _ALWAYS | _dispatched(call.allowed)
    for found in call.seen("operations"):
        if _base(str(found.get("name"))) not in allowed:
            does = "casts, copies or reads back" if found.get("grey") else "computes"
            where = f"line {found.get('line')!s:.10}: {found.get('text')!s:.160}"
            message = f"the host {does} with torch ({found.get('name')!s:.60}), {where}"
            raise CandidateFailed(Status.FALLBACK, message)


def _dispatched(allowed: Collection[str]) -> frozenset[str]:
    """The dispatcher's names of what an op allows: "torch.sum", ".to", "/"."""
    own = {name.rpartition(".")[2] or name for name in allowed}
    return frozenset(_plain(name) for one in own for name in (one, *_DISPATCHED.get(one, ())))


def _base(name: str) -> str:
    """`aten.add_.Tensor` as "add"."""
    parts = name.split(".")
    return _plain(parts[1] if len(parts) > 1 else name)


def _plain(name: str) -> str:
    return name.removesuffix("_")
