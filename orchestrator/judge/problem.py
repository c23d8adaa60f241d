"""A problem file, executed: `python -m orchestrator.judge.problem` reads its text and prints Facts as JSON.

Sizes are found out on torch's meta device, where nothing takes memory or time, however large they are given; only small
variants are computed, for how exact float32 is. The file is the person's own: it is executed as it is.
"""

from __future__ import annotations

import inspect
import itertools
import math
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from orchestrator import arithmetic, polynomial
from orchestrator.judge.convert.flops import counted
from orchestrator.judge.decoys import narrowly
from orchestrator.judge.results import several
from orchestrator.polynomial import NoPolynomial
from orchestrator.problems import folder
from orchestrator.problems.facts import Array, Facts
from orchestrator.problems.source import FUNCTION, as_function, constants
from orchestrator.records import to_json

Sizes = Mapping[str, int]
_SMALL = (2, 3, 4, 5, 6, 7)
_ODD = (127, 130)
_MOST_ELEMENTS = 60_000  # of one tensor of a small variant
_CLEARLY = 1.5  # times the tolerance
_DRAWS = 6
_SHOWN = 250


class Refused(Exception):
    """Why this problem cannot be an op."""


def main() -> None:
    """Answer for the text on standard input. What the file itself prints comes before a NUL."""
    try:
        facts = _examined(sys.stdin.read())
    except Refused as refused:
        facts = Facts(refused=str(refused))
    print(f"\n\0{to_json(facts, indent=None)}")


class _Ranges(TorchFunctionMode):  # type: ignore[misc]
    """Remembers which integers torch.randint drew from."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[torch.Tensor, int, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is torch.randint:
            whole = [one for one in args if isinstance(one, int)]
            low = kwargs.get("low", whole[0] if len(whole) > 1 else 0)
            self.drawn.append((result, int(low), int(kwargs.get("high", whole[-1] if whole else 0))))
        return result

    def of(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        return next(((low, high) for one, low, high in self.drawn if one is tensor), None)


class _Problem:
    """The file as a function of its constants; `shapes` is what tensors it has for some sizes."""

    def __init__(self, source: str) -> None:
        self.given = constants(source)
        namespace: dict[str, Any] = {}
        try:
            exec(compile(as_function(source, list(self.given)), "problem", "exec"), namespace)
        except SyntaxError as error:
            raise Refused(f"it cannot stand in a function: {error}") from error
        self._function: Callable[..., Any] = namespace[FUNCTION]

    def parts(self, sizes: Sizes) -> Any:
        return self._function(**{**self.given, **sizes})

    def shapes(self, sizes: Sizes) -> dict[str, tuple[Any, ...]]:
        """By name: (shape, dtype, range, parameter) of inputs, parameters and results, on the meta device."""
        ranges = _Ranges()
        with torch.device("meta"), ranges:
            model_class, get_inputs, get_init_inputs = self.parts(sizes)
            model, inputs = model_class(*get_init_inputs()), get_inputs()
            results = model(*inputs)
        names = list(inspect.signature(model_class.forward).parameters)[1:]
        found: dict[str, tuple[Any, ...]] = {}
        for name, tensor in zip(names, inputs, strict=False):
            if not isinstance(tensor, torch.Tensor):
                raise Refused(f"input {name} is {type(tensor).__name__}, not a tensor")
            found[f"in:{name}"] = (tuple(tensor.shape), _dtype(tensor), ranges.of(tensor), "")
        for key, tensor in model.named_parameters():
            found[f"in:{key.replace('.', '_')}"] = (tuple(tensor.shape), _dtype(tensor), None, key)
        results = several(results)
        for number, tensor in enumerate(results):
            if not isinstance(tensor, torch.Tensor):
                raise Refused(f"forward returns {type(tensor).__name__} where a tensor is expected")
            name = "y" if len(results) == 1 else f"y{number}"
            found[f"out:{name}"] = (tuple(tensor.shape), _dtype(tensor), None, "")
        return found

    def flops(self, sizes: Sizes) -> int:
        """What forward makes. Raises NoPolynomial where it cannot be counted."""
        with torch.device("meta"):
            model_class, get_inputs, get_init_inputs = self.parts(sizes)
            model, inputs = model_class(*get_init_inputs()), get_inputs()
            found = counted(lambda: model(*inputs))
        if found.error:
            raise NoPolynomial(found.error)
        return found.flops


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _examined(source: str) -> Facts:
    problem = _Problem(source)
    try:
        first = problem.shapes({})
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"it does not run as it is given: {type(error).__name__}: {str(error)[:_SHOWN]}") from error
    dims = _dims(problem, first)
    arrays = _arrays(problem, first, dims)
    inputs = tuple(one for key, one in arrays.items() if key.startswith("in:"))
    outputs = tuple(one for key, one in arrays.items() if key.startswith("out:"))
    works = partial(_works, problem, arrays)
    shapes = tuple(tuple(one.values()) for one in _variants(list(dims)) if works(one))
    if len(shapes) < 3:
        raise Refused(f"its sizes ({', '.join(problem.given) or 'no constants'}) cannot be varied enough")
    bench = _benched(dims, works)
    facts = Facts(
        title=_title(source),
        dims=dims,
        recovered=_recovered(dims, inputs),
        inputs=inputs,
        outputs=outputs,
        shapes=shapes,
        telling=max(shapes, key=lambda shape: (shape[-1] == _ODD[-1], math.prod(shape))),
        ranges=_drawable(dims, works),
        bench=bench,
        flops=_flops(problem, dims, [*shapes, *bench]),
    )
    return _computed(facts, source)


def _title(source: str) -> str:
    found = re.search(r'class Model\b.*?"""(.*?)"""', source, re.DOTALL)
    lines = [line.strip() for line in found[1].splitlines() if line.strip()] if found else []
    return lines[0].rstrip(".")[:100] if lines else ""


# --- what depends on which constant


def _dims(problem: _Problem, first: dict[str, tuple[Any, ...]]) -> dict[str, int]:
    """The constants that are sizes: the inputs have them in their shapes, and they can be doubled."""
    dims = {}
    for name, size in problem.given.items():
        try:
            doubled = problem.shapes({name: 2 * size})
        except Exception:  # noqa: BLE001 - the file's own code: this constant is no size that can be varied
            continue
        if any(doubled[key][0] != one[0] for key, one in first.items() if key.startswith("in:") and key in doubled):
            dims[name] = size
    return dims


def _arrays(problem: _Problem, first: dict[str, tuple[Any, ...]], dims: dict[str, int]) -> dict[str, Array]:
    doubled = {name: problem.shapes({name: 2 * size}) for name, size in dims.items()}
    arrays = {}
    for key, (shape, dtype, drawn, parameter) in first.items():
        sizes = [
            _expression(size, {name: other[key][0][axis] for name, other in doubled.items()}, dims)
            for axis, size in enumerate(shape)
        ]
        bounds = None
        if not dtype.startswith(("float", "bfloat")) and key.startswith("in:"):
            if drawn is None or dtype not in ("int32", "int64"):
                raise Refused(f"input {key[3:]} holds {dtype}, and not from torch.randint: its range is not known")
            low, high = (
                _expression(end, {name: other[key][2][at] for name, other in doubled.items()}, dims)
                for at, end in enumerate(drawn)
            )
            bounds = (low, high)
        arrays[key] = Array(key.partition(":")[2], tuple(sizes), dtype, bounds, parameter)
    return arrays


def _expression(size: int, doubled: Mapping[str, int], dims: Mapping[str, int]) -> str:
    """A size as arithmetic over dims, from what becomes of it when each is doubled."""
    product = [name for name, other in doubled.items() if other == 2 * size]
    moved = [name for name, other in doubled.items() if other != size]
    if not moved:
        return str(size)
    whole = math.prod(dims[name] for name in product)
    if product == moved and size % whole == 0:
        return " * ".join([*([str(size // whole)] if size != whole else []), *product])
    if product == moved and whole % size == 0:
        return f"{' * '.join(product)} // {whole // size}"
    (name, *more) = moved
    slope, rest = divmod(doubled[name] - size, dims[name])
    if more or rest:
        raise Refused(f"a size of {size} is no plain arithmetic over {', '.join(moved)}")
    return f"{slope} * {name} + {size - slope * dims[name]}"


def _works(problem: _Problem, arrays: Mapping[str, Array], sizes: Sizes) -> bool:
    """Whether it runs at these sizes and all shapes are as the arithmetic says."""
    try:
        found = problem.shapes(sizes)
        return all(found[key][0] == _sizes(one.shape, sizes) for key, one in arrays.items())
    except Exception:  # noqa: BLE001 - the file's own code
        return False


def _sizes(shape: Sequence[str], dims: Sizes) -> tuple[int, ...]:
    return tuple(arithmetic.value(size, dims) for size in shape)


def _recovered(dims: Mapping[str, int], inputs: Sequence[Array]) -> dict[str, str]:
    found = {}
    for name in dims:
        for one, axis in [(array, axis) for array in inputs for axis in range(len(array.shape))]:
            factor = re.fullmatch(rf"(?:(\d+) \* )?{re.escape(name)}", one.shape[axis])
            if factor and name not in found:
                found[name] = f"{one.name}.shape[{axis}]" + (f" // {factor[1]}" if factor[1] else "")
    if lacking := [name for name in dims if name not in found]:
        raise Refused(f"{', '.join(lacking)} cannot be told from the shapes of the inputs")
    return found


# --- sizes


def _variants(dims: Sequence[str]) -> Iterator[dict[str, int]]:
    """Small shapes: ones, small sizes with one dim that is no power of two, and with a power of two."""
    small = [_SMALL[at % len(_SMALL)] for at in range(len(dims))]
    tried = [[1] * len(dims), small]
    for axis, size in itertools.product(reversed(range(len(dims))), (*_ODD, 64)):
        tried.append([size if at == axis else one for at, one in enumerate(small)])
    for shape in tried:
        if math.prod(shape) <= _MOST_ELEMENTS:
            yield dict(zip(dims, shape, strict=True))


def _drawable(dims: Mapping[str, int], works: Callable[[Sizes], bool]) -> dict[str, tuple[int, int]]:
    """Ranges of which every draw that is tried works; none where one does not."""
    draw = random.Random(0)
    most = max(2, int(_MOST_ELEMENTS ** (1 / len(dims)) / 4))
    ranges = {name: (1 if works({**dims, name: 1}) else 2, most) for name in dims}
    tried = [{name: draw.randint(*bounds) for name, bounds in ranges.items()} for _ in range(_DRAWS)]
    return ranges if all(map(works, tried)) else {}


def _benched(dims: Mapping[str, int], works: Callable[[Sizes], bool]) -> tuple[tuple[int, ...], ...]:
    """The sizes that are given, and where the last is a power of two a shape in which it is none."""
    last = list(dims)[-1]
    if not math.log2(dims[last]).is_integer():
        return (tuple(dims.values()),)
    for other in (dims[last] * 15 // 16, dims[last] - 1, dims[last] + 1, 3 * dims[last]):
        if other > 2 and not math.log2(other).is_integer() and works({**dims, last: other}):
            return tuple(dims.values()), tuple({**dims, last: other}.values())
    raise Refused(f"{last} can only be a power of two")


def _flops(problem: _Problem, dims: Mapping[str, int], shapes: Sequence[Sequence[int]]) -> str:
    """What torch carries out, as arithmetic in the dims; 0 where it is not known."""
    along = {name: [size * factor for factor in range(1, polynomial.NODES + 1)] for name, size in dims.items()}
    others = [dict(zip(dims, shape, strict=True)) for shape in shapes if min(shape) > 1]
    try:
        return polynomial.fitted(polynomial.fit(along, others), problem.flops)
    except Exception:  # noqa: BLE001 - the file's own code, at sizes that it may not take
        return "0"


# --- computing


def _computed(facts: Facts, source: str) -> Facts:
    """With what a calculation on small shapes shows: where the model can be made, how exact it is, what is apart."""
    shape = dict(zip(facts.dims, facts.telling, strict=True))
    said = []
    for constructed in ("meta", "device"):
        found = replace(facts, constructed=constructed)
        namespace: dict[str, Any] = {}
        exec(compile(folder.reference("examined", found, source, ""), "reference", "exec"), namespace)
        reference = namespace["examined_ref"]
        try:
            error = max(_error(reference, found, shape, scale) for scale in folder.SCALES)
        except Exception as raised:  # noqa: BLE001 - the file's own code
            said.append(f"{type(raised).__name__}: {str(raised)[:_SHOWN]}")
            continue
        found = replace(found, error=error, along=_along(reference, found, shape))
        halves = [name for name in ("float16", "bfloat16") if _shows_in(name, reference, found)]
        return replace(found, dtypes=("float32", *halves))
    raise Refused(f"it cannot be called with its parameters as arguments: {said[-1]}")


def _made(facts: Facts, sizes: Sizes, scale: float, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    made = {}
    for one in facts.inputs:
        shape = _sizes(one.shape, sizes)
        if one.range is not None:
            low, high = _sizes(one.range, sizes)
            made[one.name] = torch.randint(low, high, shape, dtype=getattr(torch, one.dtype))
        else:
            made[one.name] = torch.randn(shape).to(dtype) * (1.0 if one.parameter else scale)
    return made


def _error(reference: Callable[..., Any], facts: Facts, sizes: Sizes, scale: float) -> float:
    arguments = _made(facts, sizes, scale, torch.float32)
    got = reference(**arguments)
    want = reference(**{name: one.double() if one.is_floating_point() else one for name, one in arguments.items()})
    worst = 0.0
    for one, other in zip(several(got), several(want), strict=True):
        beyond = (one.double() - other.double()).abs() - 1e-5 * other.double().abs()
        beyond = beyond[beyond.isfinite()]
        worst = max(worst, float(beyond.max()) if beyond.numel() else 0.0)
    return worst


def _shows_in(dtype: str, reference: Callable[..., Any], facts: Facts) -> bool:
    """Whether arithmetic in half precision is clearly beyond the tolerance there, or no different at all.

    Where it hides within the rounding of the result, that dtype's checker could not be any good.
    """
    tolerance = folder.tolerances(replace(facts, dtypes=(dtype,)))[dtype]
    worst = 0.0
    for shape, scale in itertools.product(facts.shapes, folder.SCALES):
        arguments = _made(facts, dict(zip(facts.dims, shape, strict=True)), scale, getattr(torch, dtype))
        pairs = zip(several(reference(**arguments)), several(narrowly(reference, arguments)), strict=True)
        for want, got in pairs:
            allowed = tolerance["atol"] + tolerance["rtol"] * want.double().abs()
            beyond = (got.double() - want.double()).abs() / allowed
            worst = max(worst, float(beyond.nan_to_num(nan=0.0, posinf=0.0).max()))
    return worst == 0 or worst > _CLEARLY


def _along(reference: Callable[..., Any], facts: Facts, sizes: Sizes) -> str:
    """The first dim that every result has and of whose halves the results are those of the whole."""
    arguments = _made(facts, sizes, 1.0, torch.float64)
    whole = reference(**arguments)
    for name in facts.dims:
        if sizes[name] < 2 or any(name not in one.shape for one in facts.outputs) or name not in facts.inputs[0].shape:
            continue
        axes = {one.name: one.shape.index(name) for one in facts.inputs if name in one.shape}
        first = {key: one.narrow(axes[key], 0, 1) if key in axes else one for key, one in arguments.items()}
        try:
            part = reference(**first)
        except Exception:  # noqa: BLE001 - the file's own code: then it is no dim to part along
            continue
        pairs = zip(facts.outputs, several(whole), several(part), strict=True)
        if all(torch.allclose(a.narrow(out.shape.index(name), 0, 1).double(), b.double()) for out, a, b in pairs):
            return name
    return ""


if __name__ == "__main__":
    main()
