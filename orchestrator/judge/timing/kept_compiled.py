"""What torch.compile made of an op's baselines, kept from one measurement to the next.

Compiling baselines is most of a measurement, and a run measures several times. What is kept are torch's own caches, as
a user's process finds them the second time. Only what it picked among several configurations is picked again by each
process: a wrong pick would be one for good, and where sittings pick anew, how sure a pick is shows in the interval. The
caches were written by processes of the very reference, under these versions and on this card, and are given as copies
to processes of the same reference alone; no candidate can write there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator.judge.surroundings import INDUCTOR_CACHE, TRITON_CACHE
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.warm_cache import WarmCache


class KeptCompiled:
    """The caches of one card and one set of versions."""

    def __init__(self, folder: Path, about: Mapping[str, str]) -> None:
        self._folder = folder
        self._about = dict(about)

    def give(self, spec: Spec, file: Path, scratch: Path) -> bool:
        """Copy what is kept of that baseline to where its process will look; whether there is anything.

        `file` holds the reference.
        """
        return any([cache.give(file, scratch / part) for part, cache in self._parts(spec)])

    def forget(self, spec: Spec, file: Path, scratch: Path) -> None:
        """What was given fails: neither its process nor a later one is to find it."""
        for part, cache in self._parts(spec):
            cache.forget(file)
            shutil.rmtree(scratch / part, ignore_errors=True)

    def take(self, spec: Spec, file: Path, scratch: Path) -> None:
        """Keep what its process, which has ended, left there."""
        for part, cache in self._parts(spec):
            cache.take(file, scratch / part)

    def _parts(self, spec: Spec) -> Iterator[tuple[str, WarmCache]]:
        for part in (INDUCTOR_CACHE, TRITON_CACHE):
            yield part, WarmCache(self._folder / part, {**self._about, "mode": spec.mode, "function": spec.function})
