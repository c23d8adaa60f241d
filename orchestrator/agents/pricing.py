"""What a reply cost, by a price table that the person fills in.

Owns the table's format and the sum. Knows no price: they change, and a wrong one is worse than none.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, TypeAdapter

from orchestrator import yamlfile
from orchestrator.records import Usage

_MILLION = 1_000_000


class Price(BaseModel):
    """USD per million tokens. Where cached_input is left out, what came from the cache costs as much as other input."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached_input: NonNegativeFloat | None = None


class PriceTable(BaseModel):
    """Prices by the beginning of the model's name; the longest beginning that fits counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prices: dict[str, Price] = {}

    def of(self, model: str) -> Price | None:
        """The price of a model, or None where the table does not know it."""
        fitting = [prefix for prefix in self.prices if model.startswith(prefix)]
        return self.prices[max(fitting, key=len)] if fitting else None


def load(path: Path) -> PriceTable:
    """The table in a YAML file. Raises UsageError."""
    called = f"the price table {path}"
    return yamlfile.checked(TypeAdapter(PriceTable), yamlfile.read(path, called) or {}, called)


def cost(usage: Usage, model: str, table: PriceTable) -> float | None:
    """The cost of a reply; None where the price or a count is unknown.

    An estimate: what a provider charges for writing to its cache, for batches or by time of day is not in it.
    """
    price = table.of(model)
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = usage.cached_tokens or 0
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input_tokens - cached
    return (fresh * price.input + cached * cached_price + usage.output_tokens * price.output) / _MILLION
