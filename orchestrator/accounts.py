"""What runs have cost by model and prompt, and what the next ones are likely to, by the ledger.

An estimate says what it is from: earlier runs on the op, or without any the prompts alone, and then what it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.markup import escape
from rich.table import Table

from orchestrator.config import LAUNCH, Settings
from orchestrator.costs import added
from orchestrator.ledger import Ledger, Row
from orchestrator.ops import Op
from orchestrator.records import Cost, Decision
from orchestrator.text import printable

_ACCEPTED = (Decision.MERGE, Decision.UNMEASURED)
_HEADS = ("op", "model", "first prompt", "accepted", "calls", "tokens", "USD", "GPU s", "tokens each", "USD each")
_CHARACTERS = 4  # of a token, about


@dataclass(frozen=True)
class Group:
    """The runs of an op that began with one prompt and were answered by one model."""

    op: str
    model: str
    prompt_sha256: str
    runs: int
    accepted: int
    cost: Cost


@dataclass(frozen=True)
class Estimate:
    """What a run on an op is likely to cost: the mean of earlier ones, or without any the prompts it may ask."""

    op: str
    earlier: int  # runs that it is the mean of
    calls: int
    tokens: int | None
    usd: float | None


def groups(ledger: Ledger) -> tuple[Group, ...]:
    """All runs, by op, model and the first prompt that the model got."""
    decided = {row["run"]: row["decision"] for row in ledger.rows("decisions")}
    found: dict[tuple[str, str, str], Group] = {}
    for row in ledger.rows("runs"):
        calls = _asked(ledger, row)
        if not calls:
            continue
        first = calls[0]
        key = (str(row["op"]), str(first["model"]), _prompt(ledger, row, first))
        group = found.get(key, Group(*key, runs=0, accepted=0, cost=Cost()))
        found[key] = replace(
            group,
            runs=group.runs + 1,
            accepted=group.accepted + (decided.get(row["run"]) in _ACCEPTED),
            cost=added(group.cost, _of_rows(calls, row)),
        )
    return tuple(found[key] for key in sorted(found))


def table(every: Sequence[Group]) -> Table:
    """As a person reads it. Per accepted kernel: all that the group's runs spent, over what they brought."""
    made = Table(*_HEADS, box=None, pad_edge=False)
    for group in every:
        made.add_row(*map(escape, _cells(group)))
    return made


def _cells(group: Group) -> tuple[str, ...]:
    cost, tokens = group.cost, group.cost.input_tokens + group.cost.output_tokens
    each = group.accepted or None
    return (
        printable(group.op),
        printable(group.model, 60),
        group.prompt_sha256[:12],
        f"{group.accepted} of {group.runs}",
        str(cost.calls),
        str(tokens) if cost.tokens_known else "?",
        f"{cost.usd:.4f}" if cost.usd_known else "?",
        f"{cost.gpu_s:.0f}",
        f"{tokens / each:.0f}" if each and cost.tokens_known else "",
        f"{cost.usd / each:.4f}" if each and cost.usd_known else "",
    )


def estimate(ledger: Ledger, op: Op, settings: Settings) -> Estimate:
    """From the ledger's earlier runs on this op, by the model that is asked for where one is; else from the prompts."""
    earlier = []
    for row in ledger.rows("runs"):
        calls = _asked(ledger, row) if row["op"] == op.name else []
        if calls and settings.agent.model in (None, *(call["model"] for call in calls)):
            earlier.append(_of_rows(calls, row))
    if not earlier:
        return _from_prompts(op, settings)
    count = len(earlier)
    total = sum(cost.input_tokens + cost.output_tokens for cost in earlier)
    tokens = round(total / count) if all(cost.tokens_known for cost in earlier) else None
    usd = sum(cost.usd for cost in earlier) / count if all(cost.usd_known for cost in earlier) else None
    return Estimate(op.name, count, round(sum(cost.calls for cost in earlier) / count), tokens, usd)


def estimated(every: Sequence[Estimate]) -> tuple[str, ...]:
    """Estimates in sentences: those from the record together, then the others, which say what they leave out."""
    known, others = [one for one in every if one.earlier], [one for one in every if not one.earlier]
    return (*_from_the_record(known), *_at_most(others))


def _from_the_record(known: Sequence[Estimate]) -> tuple[str, ...]:
    if not known:
        return ()
    tokens, usd = [one.tokens for one in known], [one.usd for one in known]
    parts = [f"about {sum(one.calls for one in known)} calls"]
    parts += ["tokens not known" if None in tokens else f"{sum(filter(None, tokens))} tokens"]
    parts += ["price not known" if None in usd else f"{sum(filter(None, usd)):.2f} USD"]
    runs = sum(one.earlier for one in known)
    return (f"estimate for {_names(known)}: {', '.join(parts)}, as the mean of {runs} earlier runs",)


def _at_most(others: Sequence[Estimate]) -> tuple[str, ...]:
    if not others:
        return ()
    calls, tokens = sum(one.calls for one in others), sum(one.tokens or 0 for one in others)
    return (
        f"estimate for {_names(others)}, without an earlier run: at most {calls} calls with about {tokens} tokens of "
        "first prompts; replies and reports are not in it",
    )


def _names(every: Sequence[Estimate]) -> str:
    return ", ".join(one.op for one in every)


def _from_prompts(op: Op, settings: Settings) -> Estimate:
    """Every sample of every round of every stage that asks a model, with a prompt as long as the op's own files."""
    stages = [stage for stage in settings.loop.stages if stage != LAUNCH]
    calls = settings.loop.rounds * settings.loop.samples * len(stages)
    files = {name: data for name, data in op.workspace_files().items() if name != "bench.py"}
    prompt = sum(len(data.decode()) for data in files.values()) // _CHARACTERS
    return Estimate(op.name, 0, calls, calls * prompt, None)


def _asked(ledger: Ledger, run: Row) -> list[Row]:
    """The calls of a run that a model answered now, in order."""
    return [row for row in ledger.rows("model_calls", str(run["run"])) if row["answered"] and row["requests"]]


def _prompt(ledger: Ledger, run: Row, call: Row) -> str:
    attempts = ledger.rows("attempts", str(run["run"]))
    return next((str(row["prompt_sha256"]) for row in attempts if row["attempt"] == call["attempt"]), "")


def _of_rows(calls: Sequence[Row], run: Row) -> Cost:
    return Cost(
        calls=len(calls),
        input_tokens=int(_sum(calls, "input_tokens")),
        output_tokens=int(_sum(calls, "output_tokens")),
        usd=_sum(calls, "cost_usd"),
        tokens_known=all(row[name] is not None for row in calls for name in ("input_tokens", "output_tokens")),
        usd_known=all(row["cost_usd"] is not None for row in calls),
        gpu_s=_number(run["gpu_s"]),
    )


def _sum(rows: Sequence[Row], name: str) -> float:
    return sum((_number(row[name]) for row in rows), 0.0)


def _number(value: str | int | float | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
