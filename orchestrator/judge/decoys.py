"""Wrong kernels made from an op's own reference, each standing for a class of real faults.

Owns which decoys there are for an op: derived from its inputs, dims, outputs and parameters, never from what it
computes. A decoy is a function with the entry's arguments that calls the reference on changed arguments or changes its
result, so that it is right wherever the change does not show. What becomes of them is `opcheck`'s to find out. Faults
that only one op can have are functions in the op's own decoys.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from orchestrator.records import OpCheckJob

Arguments = Mapping[str, Any]
Function = Callable[..., Any]
# A right result and the arguments of its call, made into a wrong result.
ChangedResult = Callable[[torch.Tensor, Arguments], torch.Tensor]

_LOWER = {"float32": "TF32", "float16": "bfloat16", "bfloat16": "float8_e5m2"}
_TF32_DROPS = 13  # of the 23 bits of float32's mantissa

# What an op's author can do about a decoy that no case rejects.
_VALUES = "list values at which the right result is far from it: a scale near 1, more kinds in sweep.telling.values"
_NONFINITE = "list nan and inf in sweep.telling.values"
_HALF = "list float16 or bfloat16 in sweep.dtypes"
_OWN = "list a case in which its fault shows"
_LAYOUTS = "list sliced and transposed in sweep.telling.values"
_LONG = 8192  # columns: most kernels hold a row of so many in one block, and loop over longer ones


@dataclass(frozen=True)
class Decoy:
    """A wrong kernel: its name, the fault that it stands for, and what to list in op.yaml when no case rejects it.

    `exact`: it uses the reference's own arithmetic, so that called in float64 it shows whether it is the same function.
    """

    name: str
    about: str
    function: Function
    advice: str
    exact: bool = True
    parameter: str = ""  # of which it takes one value whatever is passed
    authored: bool = False  # from the op's own decoys.py, and so to run on every case


def made(op: OpCheckJob, reference: Function) -> list[Decoy]:
    """All decoys that the op's form gives, from crude to subtle."""
    dims = dict.fromkeys(size for shape in op.inputs.values() for size in shape if size.isidentifier())
    along = [decoy for dim in dims for decoy in _along(op, reference, dim)]
    everywhere = [
        *_results(op, reference),
        *_inputs(op, reference),
        *_strides(op, reference),
        *_parameters(op, reference),
    ]
    return [*everywhere, *_of_long_rows(everywhere, reference), *along, *_precision(op, reference)]


def own(source: str, path: str) -> list[Decoy]:
    """The functions that an op's decoys.py defines: its author's code, trusted as the reference is.

    Raises ValueError where one does not say which fault it stands for.
    """
    namespace: dict[str, Any] = {"__name__": "decoys"}
    exec(compile(source, path, "exec"), namespace)
    defined = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    decoys = []
    for name in (name for name in defined if not name.startswith("_")):
        function = namespace[name]
        if not function.__doc__:
            raise ValueError(f"{path}: the docstring of {name} must say which fault it stands for")
        about = " ".join(function.__doc__.split())
        decoys.append(Decoy(name.replace("_", " "), about, function, _OWN, exact=False, authored=True))
    return decoys


def _results(op: OpCheckJob, reference: Function) -> Iterator[Decoy]:
    """The right result, changed as a whole; of several results one at a time, the others right."""
    for index, (output, shape) in enumerate(op.outputs.items()):
        for name, about, advice, change in _result_changes(op, shape):
            which = f"{name} ({output})" if len(op.outputs) > 1 else name
            yield Decoy(which, about, _with_result(reference, index, change), advice)


def _result_changes(op: OpCheckJob, shape: tuple[str, ...]) -> Iterator[tuple[str, str, str, ChangedResult]]:
    yield "zeros", "nothing is computed", _VALUES, lambda right, _: torch.zeros_like(right)
    yield "constant", "the right result's mean everywhere", _VALUES, lambda right, _: _mean_everywhere(right)
    yield (
        "last element missing",
        "the last lane of the last program stores nothing",
        _VALUES,
        lambda right, _: _cut(right),
    )
    yield "NaN hidden", "NaN becomes 0, infinities the largest number", _NONFINITE, lambda right, _: right.nan_to_num()
    yield "kept in float32", "the result has the accumulator's dtype", _HALF, lambda right, _: right.float()
    if len(shape) > 1:
        yield "transposed", "rows and columns change places", _VALUES, lambda right, _: _transposed(right)
    for name in (name for name in op.inputs if op.inputs[name] == shape and name not in op.integers):
        yield f"{name} returned", "an input is handed back", _VALUES, _handing_back(name)


def _handing_back(name: str) -> ChangedResult:
    return lambda right, arguments: arguments[name].to(right.dtype)


def _with_result(reference: Function, index: int, change: ChangedResult) -> Function:
    def decoy(**arguments: Any) -> Any:
        right = reference(**arguments)
        if not isinstance(right, tuple):
            return change(right, arguments)
        return tuple(change(one, arguments) if at == index else one for at, one in enumerate(right))

    return decoy


def _mean_everywhere(right: torch.Tensor) -> torch.Tensor:
    finite = right[right.isfinite()]
    return torch.full_like(right, finite.double().mean().item() if finite.numel() else 0)


def _cut(right: torch.Tensor) -> torch.Tensor:
    cut = right.clone(memory_format=torch.contiguous_format)
    cut.view(-1)[-1:] = 0
    return cut


def _transposed(right: torch.Tensor) -> torch.Tensor:
    return right.transpose(-1, -2).reshape(right.shape)


def _inputs(op: OpCheckJob, reference: Function) -> Iterator[Decoy]:
    """One term dropped: an input as though it were the neutral element of a sum, or of a product."""
    for name in op.inputs:
        advice = f"list values at which {name} shows: sweep.telling.values, or draw {name} with another range"
        for value in (0, 1):
            change = partial(_filled, value=value)
            about = f"the term with {name} is forgotten"
            yield Decoy(f"{name} as {value}s", about, _with_arguments(reference, name, change), advice)


def _filled(tensor: torch.Tensor, value: int) -> torch.Tensor:
    if not tensor.is_floating_point() and tensor.numel():
        value = min(value, max(int(tensor.max()), 0))  # an index stays one
    return torch.full_like(tensor, value)


def _strides(op: OpCheckJob, reference: Function) -> Iterator[Decoy]:
    for name in op.strided:
        yield Decoy(
            f"strides of {name} ignored",
            "the memory is read as though it were contiguous",
            _with_arguments(reference, name, _as_contiguous),
            _LAYOUTS,
            exact=False,
        )
    for name, other in zip(op.strided, op.strided[1:], strict=False):
        yield Decoy(
            f"strides of {name} for {other}",
            "one input is read as another lies",
            partial(_as_another, reference, name, other),
            _LAYOUTS,
            exact=False,
        )


def _as_another(reference: Function, name: str, other: str, **arguments: Any) -> Any:
    one, two = arguments[name], arguments[other]
    if one.shape != two.shape:
        return reference(**arguments)
    room = two.untyped_storage().nbytes() // two.itemsize - two.storage_offset()
    reach = sum((size - 1) * stride for size, stride in zip(two.shape, one.stride(), strict=True)) + 1
    read = two.as_strided(two.shape, one.stride()) if reach <= room else torch.full_like(two, 7)
    return reference(**{**arguments, other: read})


def _of_long_rows(decoys: Sequence[Decoy], reference: Function) -> Iterator[Decoy]:
    """What a path for long rows forgets, while that for short ones is right."""
    for one in decoys:
        if one.name.startswith(("NaN hidden", "strides of")) or one.name.endswith("as its default"):
            function = partial(_in_long_rows, one.function, reference)
            yield replace(one, name=f"{one.name}, in long rows", function=function, parameter="")


def _in_long_rows(decoy: Function, reference: Function, **arguments: Any) -> Any:
    rows = [tensor.shape[-1] for tensor in arguments.values() if isinstance(tensor, torch.Tensor) and tensor.ndim]
    return (decoy if max(rows) > _LONG else reference)(**arguments)


def _as_contiguous(tensor: torch.Tensor) -> torch.Tensor:
    dense = torch.empty(tensor.shape, device="meta").stride()
    return tensor.as_strided(tensor.shape, dense)


def _parameters(op: OpCheckJob, reference: Function) -> Iterator[Decoy]:
    """A parameter that is not passed on."""
    for name, default in op.parameters.items():
        advice = f"give {name} another value in sweep.telling.parameters, one that shows at the telling shape"
        about = f"{name} is written into the kernel instead of passed on"
        fixed: list[tuple[str, Any]] = [("its default", default)]
        if isinstance(default, int | float) and not isinstance(default, bool) and default != 0:
            fixed.append(("0", type(default)(0)))
        for shown, value in fixed:
            change = partial(_always, value)
            function = _with_arguments(reference, name, change)
            yield Decoy(f"{name} as {shown}", about, function, advice, parameter=name)


def _always(value: Any, _: Any) -> Any:
    return value


def _with_arguments(reference: Function, name: str, change: Callable[[Any], Any]) -> Function:
    return lambda **arguments: reference(**{**arguments, name: change(arguments[name])})


class _Along:
    """The arguments and results of an op along one of its dims."""

    def __init__(self, op: OpCheckJob, reference: Function, dim: str) -> None:
        self.inputs = {name: shape.index(dim) for name, shape in op.inputs.items() if dim in shape}
        self.outputs = [shape.index(dim) if dim in shape else None for shape in op.outputs.values()]
        self.reference = reference

    def size(self, arguments: Arguments) -> int:
        name, axis = next(iter(self.inputs.items()))
        return int(arguments[name].shape[axis])

    def changed(self, arguments: Arguments, change: Callable[[torch.Tensor, int], torch.Tensor]) -> Any:
        """The reference with each input that has the dim changed along it."""
        along = {name: change(arguments[name], axis) for name, axis in self.inputs.items()}
        return self.reference(**{**arguments, **along})

    def picked(self, arguments: Arguments, index: torch.Tensor) -> Any:
        """The reference with, in each place along the dim, what stands in another."""
        return self.changed(arguments, lambda tensor, axis: tensor.index_select(axis, index.to(tensor.device)))

    def joined(
        self, results: Any, others: Any, change: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]
    ) -> Any:
        """Results that have the dim are made of both; those that do not are the first's."""
        several = isinstance(results, tuple)
        pairs = zip(results, others, self.outputs, strict=True) if several else [(results, others, self.outputs[0])]
        made = [one if axis is None else change(one, other, axis) for one, other, axis in pairs]
        return tuple(made) if several else made[0]


def _along(op: OpCheckJob, reference: Function, dim: str) -> Iterator[Decoy]:
    """Faults of masks and loops along one dim."""
    along = _Along(op, reference, dim)
    sizes = f"list a {dim} that is no power of two in sweep.shapes, within sweep.quick"
    sample = f"tighten the tolerance, or list rows and columns in sweep.telling.values, with {dim} above 2"
    yield Decoy(f"{dim} as BLOCK", "padding counts as elements", lambda **a: _padded(along, a), sizes)
    yield Decoy(f"one more {dim}", "the mask lets one element too many in", lambda **a: _one_more(along, a), sample)
    yield Decoy(f"last {dim} left out", "the mask or the loop ends one early", lambda **a: _left_out(along, a), sample)
    yield Decoy(f"every other {dim}", "what is summed over is a sample", lambda **a: _sampled(along, a), sample)
    if any(axis is not None for axis in along.outputs):
        sizes = f"list a {dim} above 1 in sweep.shapes, within sweep.quick"
        yield Decoy(
            f"half of {dim} missing", "the grid is too small", lambda **a: _halved(along, a, stale=False), sizes
        )
        yield Decoy(f"half of {dim} stale", "memory of before shows", lambda **a: _halved(along, a, stale=True), sizes)


def _padded(along: _Along, arguments: Arguments) -> Any:
    """Zeros up to the next power of two take part."""
    size = along.size(arguments)
    block = 1 << max(size - 1, 0).bit_length()
    wide = along.changed(arguments, lambda tensor, axis: _extended(tensor, axis, block))
    return along.joined(wide, wide, lambda one, _, axis: one.narrow(axis, 0, size))


def _extended(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    more = list(tensor.shape)
    more[axis] = size - more[axis]
    return torch.cat([tensor, tensor.new_zeros(more)], axis)


def _one_more(along: _Along, arguments: Arguments) -> Any:
    """What lies behind the end in memory takes part: the first element of the next row."""
    size = along.size(arguments)
    wide = along.changed(arguments, lambda tensor, axis: torch.cat([tensor, _behind(tensor, axis)], axis))
    return along.joined(wide, wide, lambda one, _, axis: one.narrow(axis, 0, size))


def _behind(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    first = tensor.narrow(axis, 0, min(1, tensor.shape[axis]))
    return first.roll(-1, axis - 1) if axis else first


def _left_out(along: _Along, arguments: Arguments) -> Any:
    """The last place counts for none but itself; the first counts twice, so that the number of places is right."""
    index = torch.arange(along.size(arguments))
    index[-1:] = 0
    return along.joined(
        along.picked(arguments, index),
        along.reference(**arguments),
        lambda one, other, axis: torch.cat(
            [
                one.narrow(axis, 0, max(len(index) - 1, 0)),
                other.narrow(axis, max(len(index) - 1, 0), min(1, len(index))),
            ],
            axis,
        ),
    )


def _sampled(along: _Along, arguments: Arguments) -> Any:
    """Each place is right in itself, and what is taken over all of them is taken over every other one."""
    places = torch.arange(along.size(arguments))
    even = places // 2 * 2
    odd = (even + 1).clamp(max=max(len(places) - 1, 0))

    def woven(one: torch.Tensor, other: torch.Tensor, axis: int) -> torch.Tensor:
        form = [-1 if at == axis % one.ndim else 1 for at in range(one.ndim)]
        return torch.where((places % 2 == 0).view(form).to(one.device), one, other)

    return along.joined(along.picked(arguments, even), along.picked(arguments, odd), woven)


def _halved(along: _Along, arguments: Arguments, *, stale: bool) -> Any:
    """The second half along the dim is not computed: zeros, or what the first half left there."""
    size = along.size(arguments)
    kept = -(-size // 2)

    def half(right: torch.Tensor, _: torch.Tensor, axis: int) -> torch.Tensor:
        first = right.narrow(axis, 0, kept)
        rest = first.narrow(axis, 0, size - kept)
        return torch.cat([first, rest if stale else torch.zeros_like(rest)], axis)

    right = along.reference(**arguments)
    return along.joined(right, right, half)


def _precision(op: OpCheckJob, reference: Function) -> Iterator[Decoy]:
    """Less precise than the op asks: bits of the inputs dropped, or arithmetic in the inputs' own half precision."""
    for dtype in (dtype for dtype in op.dtypes if dtype in _LOWER):
        yield Decoy(
            f"{dtype} as {_LOWER[dtype]}",
            "the inputs pass through a dtype with fewer bits",
            _lowering(reference, getattr(torch, dtype)),
            f"tighten tolerance.{dtype}, or precision",
            exact=False,
        )
    if {"float16", "bfloat16"} & set(op.dtypes):
        yield Decoy(
            "arithmetic in half precision",
            "the inputs are not widened before they are computed with",
            lambda **arguments: narrowly(reference, arguments),
            "tighten precision, or list a scale at which half precision overflows",
            exact=False,
        )


def _lowering(reference: Function, dtype: torch.dtype) -> Function:
    return lambda **arguments: reference(**tree_map_only(torch.Tensor, lambda t: _lowered(t, dtype), arguments))


def _lowered(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if tensor.dtype is not dtype:
        return tensor
    if dtype is torch.float32:
        bits = tensor.contiguous().view(torch.int32)
        return ((bits + (1 << _TF32_DROPS - 1)) & -(1 << _TF32_DROPS)).view(torch.float32)
    return tensor.to(torch.bfloat16 if dtype is torch.float16 else torch.float8_e5m2).to(dtype)


def narrowly(reference: Function, arguments: Arguments) -> Any:
    """The reference where each float32 result of an operation is rounded to the half dtype of its arguments."""
    dtypes = [value.dtype for value in arguments.values() if isinstance(value, torch.Tensor)]
    half = next((dtype for dtype in dtypes if dtype in (torch.float16, torch.bfloat16)), None)
    if half is None:
        return reference(**arguments)
    with _Rounding(half):
        return reference(**arguments)


class _Rounding(TorchDispatchMode):  # type: ignore[misc]
    """Every float32 result of an operation is rounded to a half dtype."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise torch wraps what follows, and its first use imports torch's compiler: four seconds."""
        return False

    def __init__(self, half: torch.dtype) -> None:
        super().__init__()
        self._half = half

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return tree_map_only(torch.Tensor, self._rounded, func(*args, **(kwargs or {})))

    def _rounded(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self._half).to(tensor.dtype) if tensor.dtype is torch.float32 else tensor
