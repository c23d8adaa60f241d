"""References that are not the formula itself, against an independent oracle."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest
import torch

from orchestrator import resources


def reference(name: str) -> ModuleType:
    """The op's reference.py as a module."""
    path = resources.shipped("configs") / "ops" / name / "reference.py"
    spec = importlib.util.spec_from_file_location(f"{name}_reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("seed", "offset", "word"),
    [
        (0, 0, 0x6627E8D5),  # the generator's published answer for a counter and a key of zeros
        (0x299F31D0A4093822, 0x243F6A88, None),
    ],
)
def test_dropout_s_generator_gives_the_published_words(seed: int, offset: int, word: int | None) -> None:
    got = int(reference("dropout").first_word(seed, torch.tensor([offset])))
    assert got == (philox(seed, offset) if word is None else word)


def philox(seed: int, offset: int) -> int:
    """Philox 4x32-10 in Python's integers, which do not overflow."""
    counter, key = [offset, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        one, other = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            other >> 32 ^ counter[1] ^ key[0],
            other & 0xFFFFFFFF,
            one >> 32 ^ counter[3] ^ key[1],
            one & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter[0]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_the_share_it_is_asked_to_and_the_same_each_time(p: float) -> None:
    """100,000 elements: the share is within five standard deviations, in the whole and in each of ten parts."""
    dropout = reference("dropout").dropout_ref
    x = torch.ones(100, 1000)
    y = dropout(x, p, 3)
    assert torch.equal(y, dropout(x, p, 3)) and not torch.equal(y, dropout(x, p, 4))
    for part in (y, *y.split(10)):
        deviation = (p * (1 - p) / part.numel()) ** 0.5
        assert abs(float((part == 0).float().mean()) - p) < 5 * deviation
    neighbours = ((y[:, 1:] == 0) & (y[:, :-1] == 0)).float().mean()
    assert abs(float(neighbours) - p * p) < 0.01, "neighbours are dropped independently"


@pytest.mark.parametrize(("steps", "taps"), [(1, 1), (9, 3), (20, 7), (5, 17)])
def test_the_recurrence_solves_its_system_of_equations(steps: int, taps: int) -> None:
    """(I - L) y = x with w on the lower diagonals of L: no loop over steps."""
    generator = torch.Generator().manual_seed(steps)
    x = torch.randn(4, steps, dtype=torch.float64, generator=generator)
    w = torch.randn(taps, dtype=torch.float64, generator=generator) / taps
    system = torch.eye(steps, dtype=torch.float64)
    for k in range(1, min(taps, steps - 1) + 1):
        system -= torch.diag(w[k - 1].expand(steps - k), -k)
    want = torch.linalg.solve_triangular(system, x.T, upper=False).T
    assert torch.allclose(reference("ring_buffer_scan").ring_buffer_scan_ref(x, w), want, rtol=1e-12, atol=1e-12)


def forward(name: str, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The forward op by its own reference; y of a softmax is what its gradient takes."""
    function = getattr(reference(name), f"{name}_ref")
    result = function(*inputs)
    assert isinstance(result, torch.Tensor)
    return result


class Given(torch.autograd.Function):
    """The forward reference of an op, with the backward reference as its gradient."""

    @staticmethod
    def forward(ctx: Any, name: str, *inputs: torch.Tensor) -> torch.Tensor:
        """The forward reference."""
        y = forward(name, inputs)
        ctx.name = name
        ctx.save_for_backward(*((y,) if name == "softmax" else inputs))
        return y

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The backward reference."""
        name = f"{ctx.name}_backward"
        result = getattr(reference(name), f"{name}_ref")(*grads, *ctx.saved_tensors)
        return (None, *(result if isinstance(result, tuple) else (result,)))


SHAPES = {"softmax": [(3, 5)], "swiglu": [(3, 5), (3, 5)], "rmsnorm": [(3, 5), (5,)]}


@pytest.mark.parametrize("name", SHAPES)
def test_a_gradient_is_that_of_its_forward_op(name: str) -> None:
    """By finite differences in float64, and by autograd of the forward reference for gradients that are not uniform."""
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(size, dtype=torch.float64, generator=generator) for size in SHAPES[name]]
    for tensor in inputs:
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(lambda *given: Given.apply(name, *given), inputs, atol=1e-4, rtol=1e-4)
    y = forward(name, tuple(inputs))
    dy = torch.randn(y.shape, dtype=torch.float64, generator=generator)
    want = torch.autograd.grad(y, inputs, dy)
    got = torch.autograd.grad(Given.apply(name, *inputs), inputs, dy)
    assert all(torch.allclose(one, other, rtol=1e-12, atol=1e-12) for one, other in zip(got, want, strict=True))
