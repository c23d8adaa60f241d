"""The price table and the sum, and that the shipped table claims to know no price."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.agents.pricing import Price, PriceTable, cost, load
from orchestrator.errors import UsageError
from orchestrator.records import Usage

SHIPPED = Path(__file__).parents[2] / "configs" / "prices.yaml"
USAGE = Usage(1.0, input_tokens=3_000_000, output_tokens=1_000_000, cached_tokens=2_000_000)
TABLE = PriceTable(prices={"m": Price(input=1, output=10), "m-big": Price(input=2, output=20, cached_input=0.5)})


@pytest.mark.parametrize(
    ("model", "usage", "expected"),
    [
        ("m-small-2099", USAGE, 13.0),  # what was cached costs as much as other input
        ("m-big-2099", USAGE, 2.0 + 1.0 + 20.0),  # the longest beginning counts
        ("other", USAGE, None),
        ("m", Usage(1.0, input_tokens=1_000_000, output_tokens=0), 1.0),
        ("m", Usage(1.0, input_tokens=5), None),
        ("m", Usage(1.0, output_tokens=5), None),
    ],
)
def test_cost(model: str, usage: Usage, expected: float | None) -> None:
    assert cost(usage, model, TABLE) == expected


def test_the_shipped_table_is_empty_and_its_example_works(tmp_path: Path) -> None:
    assert load(SHIPPED).prices == {}
    lines = SHIPPED.read_text().splitlines()
    start = lines.index("# prices:")
    example = tmp_path / "prices.yaml"
    example.write_text("\n".join(line[2:] for line in lines[start:] if line.startswith("# ")))
    assert len(load(example).prices) == 1


def test_an_empty_file_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("# nothing yet\n")
    assert load(tmp_path / "prices.yaml").prices == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prices: {m: {input: 1, outptu: 2}}", "outpt?ut?u?"),
        ("prices: {m: {input: -1, output: 2}}", r"prices\.m\.input"),
        ("price: {}", "wrong at price"),
        ("prices: [", "not YAML"),
        (None, "cannot be read"),
    ],
)
def test_a_table_that_cannot_be(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "prices.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)
