"""Which kernels were launched during a call, and with how many programs.

Owns the two places every launch passes: the interpreter's GridExecutor and the compiled JITFunction.run. A grid that
is a function is evaluated once, by Triton, and what it returned is seen on the way. A muted launch of the candidate's
own kernel runs no program; everything around it (hooks, heuristics, compiling, the grid) is done. A rewarped one runs
with OTHER_WARPS where the launch says nothing of num_warps, and so would run with Triton's default of 4. A reversed one
runs its programs, in the interpreter, from the last to the first. In a process
that is timed, launches of the file's own kernels can be made to run with other options than they say.

Catches a kernel that is never launched, an empty grid, and, muted, a launch that the result does not need.
Cannot see: what a launched program does, and a launch that avoids both places (a compiled kernel's own runner).
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from triton.runtime import interpreter, jit

from orchestrator.judge.ways import Way

_MOST_LISTED = 64
_NAME = 120  # characters
_EMPTY_GRID = (0,)
OTHER_WARPS = 8
_current: Launches | None = None


class Launches:
    """What one candidate launched."""

    def __init__(self, own_files: frozenset[str]) -> None:
        self._own_files = own_files
        self._way = Way.PLAIN
        self._symbols: set[str] = set()
        self._counted: dict[tuple[str, int, bool], int] = {}
        self._forced: Mapping[str, int] = {}
        self._compiled: dict[int, Any] = {}
        _install()

    def begin(self, way: Way, forced: Mapping[str, int] | None = None) -> None:
        """Record from here on; `forced` options take the place of those that the file's own launches give."""
        global _current
        self._counted, self._symbols, self._way = {}, set(), way
        self._forced, self._compiled = forced or {}, {}
        _current = self

    def end(self) -> None:
        """Record no longer, change nothing."""
        global _current
        _current = None

    def found(self) -> list[dict[str, object]]:
        """Launches by kernel and number of programs; `times` counts those that are alike."""
        return [
            {"kernel": name, "programs": programs, "own": own, "times": times}
            for (name, programs, own), times in self._counted.items()
        ]

    def symbols(self) -> frozenset[str]:
        """The names under which the device knows the file's own kernels that were launched."""
        return frozenset(self._symbols)

    def compiled(self) -> list[Any]:
        """What Triton compiled of the file's own kernels that were launched, each once."""
        return list(self._compiled.values())

    def grid_for(self, function: Any, grid: Any) -> Any:
        """The grid to hand on: recorded when Triton evaluates it, and empty for a muted kernel."""
        own = self._owns(function)
        name = str(getattr(function, "__name__", "?"))[:_NAME]

        def seen(sizes: Any) -> Any:
            self._count(name, _programs(sizes), own)
            return _EMPTY_GRID if own and self._way is Way.MUTED else sizes

        return (lambda meta: seen(grid(meta))) if callable(grid) else seen(grid)

    @contextmanager
    def order_of(self, function: Any) -> Iterator[None]:
        """The order in which the interpreter runs the programs of one launch, for as long as the context lasts."""
        builder = interpreter.interpreter_builder
        if self._way is not Way.REVERSED or not self._owns(function):
            yield
            return
        usual = builder.set_grid_idx

        def from_the_end(*index: int) -> None:
            usual(*(size - 1 - place for size, place in zip(builder.grid_dim, index, strict=True)))

        builder.set_grid_idx = from_the_end
        try:
            yield
        finally:
            del builder.set_grid_idx

    def options_for(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        """The launch's options, with another number of warps where that is asked for and left open, or as forced."""
        if not self._owns(function):
            return options
        rewarped = self._way is Way.REWARPED and "num_warps" not in options
        return {**options, **({"num_warps": OTHER_WARPS} if rewarped else {}), **self._forced}

    def launched(self, function: Any, compiled: Any) -> None:
        """Remember what was compiled for a launch, and under which name."""
        name = getattr(getattr(compiled, "metadata", None), "name", None)
        if self._owns(function) and isinstance(name, str) and len(self._symbols) < _MOST_LISTED:
            self._symbols.add(name[:_NAME])
            if len(self._compiled) < _MOST_LISTED:
                self._compiled[id(compiled)] = compiled

    def _owns(self, function: Any) -> bool:
        return getattr(getattr(function, "__code__", None), "co_filename", "") in self._own_files

    def _count(self, name: str, programs: int, own: bool) -> None:
        key = (name, programs, own)
        if key in self._counted or len(self._counted) < _MOST_LISTED:
            self._counted[key] = self._counted.get(key, 0) + 1


def _programs(sizes: Any) -> int:
    try:
        return math.prod(max(0, operator.index(size)) for size in sizes)
    except TypeError:
        return 0  # not a grid: the launch itself will say so


def _install() -> None:
    """Once per process; without a current recorder both places do what they did."""
    if getattr(interpreter.GridExecutor.__call__, "of_the_witness", False):
        return
    interpreter.GridExecutor.__call__ = _interpreted(interpreter.GridExecutor.__call__)
    jit.JITFunction.run = _compiled(jit.JITFunction.run)


def _interpreted(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _current is None or kwargs.get("warmup"):
            return original(self, *args, **kwargs)
        executor = copy.copy(self)  # it may be kept and used again
        executor.grid = _current.grid_for(self.fn, self.grid)
        with _current.order_of(self.fn):
            return original(executor, *args, **kwargs)

    __call__.of_the_witness = True  # type: ignore[attr-defined]
    return __call__


def _compiled(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if _current is None or warmup:
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)
        watching, options = _current, _current.options_for(self.fn, kwargs)
        compiled = original(self, *args, grid=watching.grid_for(self.fn, grid), warmup=warmup, **options)
        watching.launched(self.fn, compiled)
        return compiled

    return run
