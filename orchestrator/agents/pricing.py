"""What a reply cost, by a price table that the person fills in.

Owns the table's format and the sum. Knows no price: they change, and a wrong one is worse than none.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, ValidationError

from orchestrator.errors import UsageError
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
    try:
        return PriceTable.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as err:
        raise UsageError(f"the price table {path} cannot be read: {err.strerror}") from err
    except yaml.YAMLError as err:
        raise UsageError(f"the price table {path} is no YAML: {' '.join(str(err).split())}") from err
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"the price table {path} is wrong at {where or 'its top'}: {first['msg']}") from err


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
