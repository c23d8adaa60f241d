"""Parts of the witness on their own: what a confined candidate on a CPU does not reach."""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from orchestrator.judge.ways import Way  # noqa: E402
from orchestrator.judge.witness import launches, results, state  # noqa: E402
from orchestrator.judge.witness.allocator import Allocator  # noqa: E402
from orchestrator.judge.witness.kept import Kept  # noqa: E402
from orchestrator.judge.witness.launches import Launches  # noqa: E402
from orchestrator.judge.witness.operations import Operations  # noqa: E402
from orchestrator.judge.witness.origin import Origin, Origins  # noqa: E402


class Jitted:
    """As much of a compiled kernel as a launch is told by."""

    def __init__(self, fn: Callable[..., object]) -> None:
        self.fn = fn


def own(y: object) -> None:
    """A kernel of this file."""


def compiled() -> tuple[Callable[..., object], list[object]]:
    """JITFunction.run as far as the grid goes, and the grids that reach the driver."""
    launched: list[object] = []

    def run(self: Jitted, *args: object, grid: Any, warmup: bool, **kwargs: object) -> None:
        if not warmup:
            launched.append(grid({"BLOCK": 4}) if callable(grid) else grid)

    return launches._compiled(run), launched


@pytest.mark.parametrize("way", [Way.PLAIN, Way.MUTED])
def test_compiled_launches(way: Way) -> None:
    run, launched = compiled()
    witness = Launches(frozenset({__file__}))
    evaluated = []

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        evaluated.append(meta)
        return 3, meta["BLOCK"]

    witness.begin(way)
    run(Jitted(own), grid=grid, warmup=False)
    run(Jitted(own), grid=grid, warmup=True)
    run(Jitted(gc.collect), grid=(2,), warmup=False)
    run(Jitted(own), grid=(0, 5), warmup=False)
    witness.end()
    run(Jitted(own), grid=(7,), warmup=False)
    assert evaluated == [{"BLOCK": 4}]
    assert launched == [*(((0,), (2,), (0,)) if way is Way.MUTED else ((3, 4), (2,), (0, 5))), (7,)]
    assert [(one["kernel"], one["programs"], one["own"]) for one in witness.found()] == [
        ("own", 12, True),
        ("collect", 2, False),
        ("own", 0, True),
    ]


def test_options_of_the_files_own_launches_can_be_forced() -> None:
    witness = Launches(frozenset({__file__}))
    witness.begin(Way.PLAIN, {"num_warps": 16})
    assert witness.options_for(own, {"num_warps": 4, "BLOCK": 8}) == {"num_warps": 16, "BLOCK": 8}
    assert witness.options_for(gc.collect, {"num_warps": 4}) == {"num_warps": 4}, "another file's launches stay"
    witness.begin(Way.REWARPED)
    assert witness.options_for(own, {"BLOCK": 8}) == {"BLOCK": 8, "num_warps": launches.OTHER_WARPS}
    assert witness.options_for(own, {"num_warps": 4}) == {"num_warps": 4}, "a new beginning forces nothing"
    witness.end()


def test_triton_is_not_the_candidate_and_its_callbacks_are() -> None:
    from triton.runtime.autotuner import Heuristics

    seen: list[Origin] = []

    class Kernel:
        def run(self, *args: object, **kwargs: object) -> None:
            """Called by Triton, and here it stands for Triton's launch."""

    origins = Origins(__file__)
    import sys

    Heuristics(Kernel(), [], {"BLOCK": lambda args: seen.append(origins.of(sys._getframe()))}).run(grid=(1,))
    assert seen[0].candidate and seen[0].line > 0
    called_by_triton = {"BLOCK": _Asks(origins, seen)}
    Heuristics(Kernel(), [], called_by_triton).run(grid=(1,))
    assert not seen[1].candidate


class _Asks:
    """A callable that leaves no frame of this file between Triton and the question."""

    def __init__(self, origins: Origins, seen: list[Origin]) -> None:
        self._origins, self._seen = origins, seen

    def __call__(self, args: object) -> None:
        import sys

        frame = sys._getframe().f_back
        self._seen.append(self._origins.of(frame))


def allocate(allocator: Allocator, *shape: int) -> Any:
    return allocator.serve(torch.ops.aten.empty.memory_format, (list(shape),), {}, 1)


def test_memory_that_is_kept_stays_and_what_is_let_go_is_forgotten() -> None:
    allocator = Allocator()
    kept, gone = allocate(allocator, 3), allocate(allocator, 3)
    kept.fill_(5)
    block = weakref.ref(allocator._held[1])
    del gone
    assert allocator.overruns() == []
    assert block() is None and len(allocator._known) == 1
    for _ in range(600):
        allocate(allocator, 2)
    assert allocator.overruns() == [] and len(allocator._known) == 1
    assert kept.tolist() == [5, 5, 5]


def test_odd_requests_are_left_to_torch() -> None:
    allocator, aten = Allocator(), torch.ops.aten
    assert allocate(allocator, 0).shape == (0,)
    assert allocate(allocator).shape == ()
    with pytest.raises(RuntimeError, match="negative"):
        allocate(allocator, -1)
    sparse = allocator.serve(aten.zeros.default, ([2, 2],), {"layout": torch.sparse_coo}, 1)
    assert sparse.layout is torch.sparse_coo
    assert allocator.serve(aten.empty.memory_format, ([2],), {"device": torch.device("meta")}, 1).device.type == "meta"


def test_a_served_tensor_survives_what_code_does_to_tensors() -> None:
    allocator = Allocator()
    tensor = allocate(allocator, 4)
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(100)
    tensor.set_(torch.zeros(2).untyped_storage())
    tensor.untyped_storage().resize_(0)
    gc.collect()
    assert allocator.overruns() == []


def test_earlier_results_are_kept_within_a_bound() -> None:
    look = results.Results()
    for _ in range(50):
        (one,) = look.look({}, [torch.zeros(10)])
        assert one == {"aliases": "", "earlier": False, "attributes": []}
    assert len(look._kept) <= 4
    assert look.look({}, ["no tensor", None, torch.zeros(0), torch.zeros(2, 2).to_sparse()])[-1]["earlier"] is False


def test_a_difference_is_found_without_asking_the_candidates_objects() -> None:
    class Agreeable:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("asked")

        __hash__ = None  # type: ignore[assignment]

    assert state._differ([1, Agreeable()], [1, Agreeable()])
    assert state._differ({"a": 1}, {"a": 2}) and not state._differ({"a": (1, "x")}, {"a": (1, "x")})


def test_a_plain_tensor_may_be_seen_as_an_array() -> None:
    with Operations(Origins(__file__), Allocator()):
        assert torch.ones(3).view(torch.uint8).numpy().size == 12


def _iterators() -> Iterator[object]:
    """As files may keep them, each with more to come."""
    yield from ([iter([1, 2]), iter(range(3)), iter({1: 2, 3: 4}), iter("abc"), reversed([1, 2]), enumerate([5, 5])])
    yield from ([zip([1, 2], [3, 4], strict=True), map(abs, [1, 2]), filter(None, [1, 2]), itertools.count()])
    yield from ([itertools.cycle([1, 1, 2]), itertools.islice(range(9), 5), itertools.chain([1, 2], [3])])
    yield (number for number in range(3))


class _Settings:
    count = 0

    def __repr__(self) -> str:
        raise AssertionError("asked")


def test_what_a_file_keeps_is_told_by_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """`_held` of this very module, in many forms; nothing of the objects is called."""
    cached = functools.lru_cache(maxsize=None)(lambda: torch.zeros(2))
    values: list[tuple[object, Callable[[Any], object]]] = [
        ([], lambda held: held.append(1)),
        ({"n": [1, {2}]}, lambda held: held["n"][1].add(3)),
        (collections.deque([1]), lambda held: held.append(2)),
        (lambda calls=[]: calls, lambda held: held().append(1)),  # noqa: B006
        (_Settings, lambda held: setattr(held, "count", held.count + 1)),
        (_Settings(), lambda held: setattr(held, "count", 5)),
        (dict.fromkeys(range(50_000)), lambda held: held.popitem()),
        (SimpleNamespace(count=[]), lambda held: held.count.append(1)),
        (torch.zeros(3), lambda held: held.add_(1)),
        (cached, lambda held: held().add_(1)),
        *[(held, next) for held in _iterators()],
    ]
    cached()
    kept = Kept(frozenset({__file__}))
    for held, change in values:
        monkeypatch.setitem(globals(), "_held", held)
        before = kept.fingerprints()["_held"]
        assert kept.fingerprints()["_held"] == before, held
        change(held)
        assert kept.fingerprints()["_held"] != before, type(held)


def test_a_strided_row_is_compared_byte_by_byte() -> None:
    """Its flat view keeps the stride, and torch refuses to read that as bytes."""
    from orchestrator.judge.checks.series import identical

    wide = torch.arange(12, dtype=torch.float16).view(1, 12)
    assert identical((wide[:, ::2],), (wide[:, ::2].contiguous(),))
    assert not identical((wide[:, ::2],), (wide[:, 1::2],))
    assert identical((wide[:, :1].expand(1, 1).as_strided((1, 1), (0, 0)),), (wide[:, :1].clone(),))
