"""What a run cost: the sum over its attempts, and how it reads.

What one reply cost is the agents' to say. A sum over something that did not say its part is a lower bound, and is told
as one; what is not known is never 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.records import Attempt, Cost


def of_attempts(attempts: Sequence[Attempt], gpu_s: float) -> Cost:
    """What a run's attempts cost. A reply that was replayed or that nobody was asked for cost nothing."""
    asked = [attempt.usage for attempt in attempts if attempt.usage.requests]
    counted = [(usage.input_tokens, usage.output_tokens, usage.cost_usd) for usage in asked]
    return Cost(
        calls=len(asked),
        input_tokens=sum(sent or 0 for sent, _, _ in counted),
        output_tokens=sum(received or 0 for _, received, _ in counted),
        usd=sum((usd or 0.0 for _, _, usd in counted), 0.0),
        tokens_known=all(sent is not None and received is not None for sent, received, _ in counted),
        usd_known=all(usd is not None for _, _, usd in counted),
        gpu_s=round(gpu_s, 1),
    )


def added(one: Cost, other: Cost) -> Cost:
    """Both together."""
    return Cost(
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        usd=one.usd + other.usd,
        tokens_known=one.tokens_known and other.tokens_known,
        usd_known=one.usd_known and other.usd_known,
        gpu_s=one.gpu_s + other.gpu_s,
    )


def told(cost: Cost) -> str:
    """In words; "" where nothing was spent."""
    parts = []
    if cost.calls:
        tokens = f"{cost.input_tokens} tokens in, {cost.output_tokens} out"
        parts += [tokens if cost.tokens_known else f"at least {tokens}" if cost.input_tokens else "tokens not known"]
        parts += [f"{cost.usd:.4f} USD" if cost.usd_known else "price not known"]
    parts += [f"{cost.gpu_s:.0f} GPU-seconds"] if cost.gpu_s else []
    return ", ".join(parts)
