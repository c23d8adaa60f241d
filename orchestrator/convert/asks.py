"""What the steps of a conversion may ask of whoever runs the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.convert.dims import Sizes
from orchestrator.convert.draft import Draft
from orchestrator.probed import Counted, Outcome, Trial


class Asks(Protocol):
    """Whoever runs trials: the probe."""

    async def trials(self, draft: Draft, trials: Sequence[Trial]) -> list[Outcome]:
        """What becomes of each trial of the op that the draft is."""
        ...

    async def counted(self, draft: Draft, sizes: Sequence[Sizes]) -> list[Counted]:
        """How many floating-point operations a call of its reference makes at each of these sizes."""
        ...

    async def built(self, sizes: Sequence[Sizes]) -> list[dict[str, list[int]] | None]:
        """Shapes of the object's own tensors where its constructor is given other sizes; None where it refuses."""
        ...
