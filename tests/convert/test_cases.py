"""Which cases a converted op is judged on: none on which an honest kernel is right by chance."""

from __future__ import annotations

from collections.abc import Sequence
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
