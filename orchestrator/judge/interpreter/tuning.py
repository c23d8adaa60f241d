"""`@triton.autotune` where no clock means anything.

The autotuner's own code runs: it prunes, and the first call of a key is preceded by a trial with its hooks and with
`reset_to_zero` and `restore_value`, as on a GPU, so a kernel that adds to what a trial left is seen to. Only one
configuration is tried, and so wins: the first that pruning leaves, unless the judge chose another by its index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton.runtime.autotuner import Autotuner


@dataclass
class _Choice:
    index: int = 0
    generation: int = 0  # counts choices, so that what an earlier one cached is not used for this one
    seen: int = 1


_choice = _Choice()


def choose_configuration(index: int) -> None:
    """From now on every autotuned kernel runs its configuration `index`, counted after pruning, modulo how many."""
    _choice.index, _choice.seen = index, 1
    _choice.generation += 1


def configurations() -> int:
    """The most configurations that an autotuned kernel had to choose from since the last choice; 1 without any."""
    return _choice.seen


def run_one_configuration() -> None:
    """Fault (3.5 to 3.7): a trial asks the driver for a benchmarker, and without a GPU there are "0 active drivers".
    A trial is one run and takes no time."""
    run, prune = Autotuner.run, Autotuner.prune_configs

    def chosen_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.__dict__.get("_choice_generation") != _choice.generation:
            self._choice_generation = _choice.generation
            self.cache.clear()
        return run(self, *args, **kwargs)

    def prune_to_one(self: Any, kwargs: Any, *rest: Any) -> Any:
        left = list(prune(self, kwargs, *rest))
        _choice.seen = max(_choice.seen, len(left))
        return [left[_choice.index % len(left)]] if left else left

    Autotuner.run = chosen_run
    Autotuner.prune_configs = prune_to_one
    Autotuner.do_bench = property(lambda self: _one_run)


def _one_run(call: Callable[[], object], *args: Any, **kwargs: Any) -> list[float]:
    call()
    return [0.0, 0.0, 0.0]
