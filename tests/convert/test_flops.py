"""What a converted op's `flops` are: counted on its code, fitted to its dims, and said to be unknown where they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from orchestrator import arithmetic, polynomial
from orchestrator.convert import Wanted, drafted, examples, extract, flops, write
from orchestrator.convert.asks import Asks
from orchestrator.convert.dims import Sizes, Span
from orchestrator.convert.draft import Draft
from orchestrator.convert.extract import Cut, Target
from orchestrator.convert.prober import probing
from orchestrator.judge.convert.flops import counted
from orchestrator.judge.timing.roofline import COMPUTE_BOUND
from orchestrator.probed import Counted

GIVEN = Path(__file__).parent / "given"
X = torch.randn(6, 48)


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda: X * 2 + 1, 2 * 288),
        (lambda: X.clone().mul_(2), 288),
        (lambda: X.sum(-1), 288),
        (lambda: X.mT.contiguous().bfloat16().float()[:, 2:].masked_fill(torch.ones(48, 4) > 0, 0), 0),
        (lambda: X.topk(3).indices + 1, 0),
        (lambda: X @ X.mT, 2 * 6 * 6 * 48),
        (lambda: torch.softmax(X, -1), 5 * 288),
        (lambda: F.conv1d(X[None], torch.ones(4, 6, 3)), 2 * 4 * 6 * 3 * 46),
    ],
)
def test_what_is_counted(call: Callable[[], object], number: int) -> None:
    assert counted(call) == Counted(number)


@pytest.mark.parametrize("masked", [True, False])
def test_attention_counts_as_its_products_and_its_softmax(masked: bool) -> None:
    q = torch.randn(2, 3, 16, 8, requires_grad=True)
    products, weights = 4 * 2 * 3 * 16 * 16 * 8, 2 * 3 * 16 * 16
    with torch.no_grad():
        found = counted(lambda: F.scaled_dot_product_attention(q, q, q, is_causal=masked))
    assert not found.error and 5 * weights <= found.flops - products < 10 * weights
    back = counted(lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, q, q, is_causal=masked).sum(), q))
    assert not back.error and back.flops > 3 * products


def test_what_is_not_known_is_named_and_what_raises_is_said() -> None:
    assert counted(lambda: torch.fft.fft(X)).error == "torch's _fft_r2c"
    assert counted(lambda: torch.linalg.cholesky(X @ X.mT + 9 * torch.eye(6))).error == "torch's linalg_cholesky_ex"
    assert counted(lambda: X @ X).error.startswith("RuntimeError: mat1 and mat2")


class Counts(Asks):
    """Whoever is asked for counts; of nothing else."""

    def __init__(self, of: Callable[[Sizes], int]) -> None:
        self._of = of

    async def counted(self, draft: Draft, sizes: Sequence[Sizes]) -> list[Counted]:
        return [Counted(self._of(each)) for each in sizes]


async def fitted(of: Callable[[Sizes], int], **spans: Span) -> Draft:
    cut = Cut(Target(Path("a.py"), "f"), False, (), "", ())
    sizes = {dim: span.near(8 * span.step) for dim, span in spans.items()}
    return await flops.counted(Draft("f", cut, sizes, {}, {}, spans=spans), Counts(of))


FREE = Span(1, 64)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("of", "spans", "text"),
    [
        (lambda s: 2 * s["M"] * s["N"] * s["K"] + s["M"] * s["N"], {"M": FREE, "N": FREE, "K": FREE}, None),
        (lambda s: 5 * s["M"] * s["N"] - 2 * s["M"], {"M": FREE, "N": FREE}, "5 * M * N - 2 * M"),
        (lambda s: s["T"] * (s["T"] + 1) // 2, {"T": FREE}, "(T**2 + T) // 2"),
        (lambda s: s["C"] // 4 * s["C"] ** 2, {"C": Span(4, 64, 4)}, "(C**3) // 4"),
        (lambda s: 7 * s["N"], {"N": FREE, "M": Span(3, 3)}, "7 * N"),
        (lambda s: s["N"] ** 2, {"N": Span(2, 4)}, "N**2"),
        (lambda s: 12, {"N": FREE}, "12"),
        (lambda s: 0, {"N": FREE}, "0"),
        (lambda s: 5 * s["N"] + (s["N"] == 1), {"N": FREE}, "5 * N"),
    ],
)
async def test_counts_become_arithmetic_in_the_dims(
    of: Callable[[Sizes], int], spans: Mapping[str, Span], text: str | None
) -> None:
    found = await fitted(of, **spans)
    assert found.flops == (text or "2 * M * N * K + M * N") and not found.notes
    assert arithmetic.names(found.flops, "flops") <= set(spans)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("of", "said"),
    [
        (lambda s: s["N"] * (s["N"].bit_length()), "does not grow with N as a polynomial does"),
        (lambda s: 2 ** s["N"], "does not grow with N as a polynomial does"),
        (lambda s: s["N"] if s["N"] < 50 else 0, "where 0 are counted"),
    ],
)
async def test_a_number_that_fits_no_arithmetic_is_not_known(of: Callable[[Sizes], int], said: str) -> None:
    found = await fitted(of, N=FREE)
    assert found.flops == flops.UNKNOWN and said in found.notes[-1]
    assert "its ceiling is that of memory alone" in found.notes[-1]


def test_an_interpolated_polynomial_has_exact_coefficients() -> None:
    grid = {(2, 4): 5 * 2 + 8, (2, 8): 5 * 2 + 16, (3, 4): 15 + 12, (3, 8): 15 + 24}
    assert polynomial.interpolated([[2, 3], [4, 8]], grid) == {(1, 0): Fraction(5), (1, 1): Fraction(1)}


def on(code: Callable[[torch.Tensor], object], *shape: int) -> Callable[[], object]:
    x = torch.randn(*shape)
    return lambda: code(x)


def given(file: str, name: str) -> Any:
    return getattr(importlib.import_module(f"tests.convert.given.{file}"), name)


def attention(s: Sizes) -> Callable[[], object]:
    return on(given("attention", "Attention")(s["C"], 4).eval().requires_grad_(False), s["B"], s["T"], s["C"])


def logsumexp(s: Sizes) -> Callable[[], object]:
    return on(given("functions", "logsumexp"), s["M"], s["N"])


def linear(s: Sizes) -> Callable[[], object]:
    return on(given("linear", "Linear")(s["N"], s["K"]).requires_grad_(False), s["M"], s["N"])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("make", "spans", "text"),
    [
        (attention, {"B": FREE, "T": FREE, "C": Span(4, 64, 4)}, "4 * B * T**2 * C + 8 * B * T * C**2 + 24 * B * T**2"),
        (logsumexp, {"M": FREE, "N": FREE}, "4 * M * N + 2 * M"),
        (linear, {"M": FREE, "N": FREE, "K": FREE}, "2 * M * N * K"),
    ],
)
async def test_code_is_counted_at_its_sizes(
    make: Callable[[Sizes], Callable[[], object]], spans: Mapping[str, Span], text: str
) -> None:
    found = await fitted(lambda s: counted(make(s)).flops, **spans)
    assert found.flops == text and not found.notes


@pytest.mark.long
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "example", "text", "multiplies"),
    [
        ("attention.py:Attention", "", "4 * B * T**2 * C + 8 * B * T * C**2 + 24 * B * T**2", True),
        ("linear.py:Linear", "", "2 * K * M * N", True),
        ("functions.py:logsumexp", "logsumexp.yaml", "4 * M * N + 2 * M", False),
        ("functions.py:selective_scan", "scan.yaml", "7 * K * T * L * E + 3 * K * T * L", None),
        ("normed.py:Standardised", "", "3 * M * N + 2 * N", False),
    ],
)
async def test_a_converted_op_is_held_to_the_ceiling_that_it_has(
    tmp_path: Path, name: str, example: str, text: str, multiplies: bool | None
) -> None:
    found = examples.read(GIVEN / example) if example else examples.Examples()
    async with probing() as probe:
        draft = await drafted(Wanted(extract.parse(f"{GIVEN}/{name}"), found, tmp_path / "it"), probe, lambda _: None)
    spec = write.op(draft).spec
    assert spec.bench.flops == text and spec.bench.flops_of == "reference"
    for shape in spec.bench.shapes:
        sizes = dict(zip(spec.dims, shape, strict=True)) | {"itemsize": 2}
        intensity = arithmetic.value(spec.bench.flops, sizes) / arithmetic.value(spec.bench.bytes, sizes)
        assert multiplies is None or (intensity >= COMPUTE_BOUND) is multiplies, (shape, intensity)
