"""Which cases a converted op is judged on: none on which an honest kernel is right by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.convert import cases
from orchestrator.convert.asks import Asks
from orchestrator.convert.draft import Asked, Draft
from orchestrator.convert.extract import Cut, Target
from orchestrator.probed import Outcome, Seen, Trial

RESULT = Seen((5, 7), "float32", low=-3.0, high=3.0, spread=1.0)
CUT = Cut(Target(Path("a.py"), "f"), False, (), "", ())


class RunsAway(Asks):
    """A reference that is exact, but at one kind of values and one seed, where its result is huge."""

    def __init__(self, kind: str, seed: int) -> None:
        self._at = (kind, seed)

    async def trials(self, draft: Draft, trials: Sequence[Trial]) -> list[Outcome]:
        return [Outcome(results=(RESULT,), error_abs=1e33 * ((one.values, one.seed) == self._at)) for one in trials]


@pytest.mark.asyncio
async def test_a_kind_of_values_that_runs_away_at_one_seed_is_not_asked() -> None:
    draft = Draft("f", CUT, {"M": 5, "N": 7}, {}, {}, asked=Asked(shapes=((5, 7),)))
    everywhere = await cases._kinds(draft, RunsAway("nothing", 0))
    assert {"rows", "columns", "large"} <= set(everywhere)
    found = await cases._kinds(draft, RunsAway("rows", 23))
    assert found == [kind for kind in everywhere if kind != "rows"]


class Damped(Asks):
    """A reference whose result a small number in it hardly changes."""

    async def trials(self, draft: Draft, trials: Sequence[Trial]) -> list[Outcome]:
        values = [float(one.parameters.get("eps", 1e-6)) for one in trials]
        return [Outcome(results=(replace(RESULT, low=-3 / (1 + eps) ** 0.5),)) for eps in values]


@pytest.mark.asyncio
async def test_another_value_of_a_parameter_is_one_that_shows() -> None:
    """An eps that is 8e-6 instead of 1e-6 is within every tolerance, and a kernel that ignores it would pass."""
    draft = Draft("f", CUT, {"M": 5, "N": 7}, {}, {}, fixed={"eps": 1e-6})
    found = await cases._parameters(draft, Damped())
    assert found.parameters == {"eps": 1e-6} and not found.fixed
    assert found.asked.told_parameters == {"eps": pytest.approx(8**6 * 1e-6)}
