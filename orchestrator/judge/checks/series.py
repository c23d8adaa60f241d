"""What a check of a series gets: a case that passed, the call that was made for it, and the means to make more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.memory import bytes_of
from orchestrator.judge.proxy import Exchange, Proxy

_AGAIN = 3


@dataclass(frozen=True)
class Series:
    """One case and its first call."""

    proxy: Proxy
    test: ModuleType
    case: Any
    first: Exchange
    device: str
    seed: int  # of further values
    once: bool  # for one series of a verdict: what need not be repeated with each dtype
    notes: list[str]  # what a check could not do; goes into the report
    any_order: bool = False  # the file adds by atomic operations, and the op does not promise to repeat the last bits
    _again: list[Exchange] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say it in the report, once."""
        if text not in self.notes:
            self.notes.append(text)

    def largest(self, elements: int) -> Series:
        """The same of the case with most elements, as many as that at most, and of the dtype compared most finely.

        There a row needs more than one block."""
        every = [self.case, *self.test.cases(True), *self.test.holdouts(self.seed, True)]
        fit = [one for one in every if math.prod(one.dims.values()) <= elements] or [self.case]
        case = max(fit, key=lambda one: (math.prod(one.dims.values()), -torch.finfo(getattr(torch, one.dtype)).eps))
        call = self.proxy.ask(self.test.make_inputs(case, self.device, self.seed), case.parameters)
        return replace(self, case=case, first=call, _again=[])

    def fresh_inputs(self) -> dict[str, torch.Tensor]:
        """Other values of the same shapes; they come to lie at the same addresses."""
        inputs: dict[str, torch.Tensor] = self.test.make_inputs(self.case, self.device, self.seed)
        return inputs

    def right(self, inputs: Mapping[str, torch.Tensor]) -> bool:
        """Call on these inputs and compare with the reference on them."""
        got, want = self.test.run(inputs, self.case.parameters)
        return self.agree(got, want)

    def again(self) -> list[Exchange]:
        """The first call three times more, one right after the other; made once for all that ask."""
        while len(self._again) < _AGAIN:
            self._again.append(self.proxy.ask(self.first.inputs, self.first.parameters))
        return self._again

    def repeats(self, again: Exchange) -> bool:
        """Whether a call on the first one's values gave the same: bit for bit, unless atomics add in any order."""
        same = identical(again.results, self.first.results)
        return same or (self.any_order and self.agree(again.value, self.first.value))

    def agree(self, got: Any, want: Any) -> bool:
        """Whether results are as many, of the same shapes and dtypes, and within the case's tolerance."""
        try:
            as_promised(got, want)
        except CandidateFailed:
            return False
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        return all(self.test.compare(one, other, self.case.dtype).passed for one, other in pairs)


SeriesCheck = Callable[[Series], None]


def identical(one: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> bool:
    """Bit for bit; NaN equals NaN of the same bits."""
    return len(one) == len(other) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(bytes_of(a), bytes_of(b))
        for a, b in zip(one, other, strict=True)
    )
