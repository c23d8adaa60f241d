"""An op is a folder: op.yaml (all that is data), reference.py (all that is code), recorded/ (replies to replay).

Owns reading and checking such a folder, and rendering the four files of a workspace from it: SPEC.md, ref.py,
test_correctness.py and bench.py. Imports no torch: the rendered files do, in processes of their own.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from orchestrator import resources
from orchestrator.decide import Thresholds
from orchestrator.errors import UsageError

Dtype = Literal["float32", "float16", "bfloat16"]
Positive = Annotated[int, Field(gt=0)]
Expression = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(_Strict):
    """A tensor argument: standard normal values, times the case's scale where `scaled`. It has the case's dtype."""

    shape: tuple[str, ...]
    scaled: bool = False


class Output(_Strict):
    """A result; its dtype is that of the input named by `dtype_of`."""

    shape: tuple[str, ...]
    dtype_of: str


class Tolerance(_Strict):
    """|got - want| <= atol + rtol * |want|."""

    rtol: Annotated[float, Field(gt=0)]
    atol: Annotated[float, Field(gt=0)]


class Telling(_Strict):
    """Cases with values that expose plausible but wrong kernels: each kind, each other parameter, for every dtype."""

    shape: tuple[Positive, ...]
    values: tuple[Literal["rows", "columns", "offset", "zero_row", "nan", "inf"], ...] = ()
    parameters: dict[str, float] = {}


class Holdout(_Strict):
    """Cases drawn anew for each verdict: `count` from the ranges, and the shapes in `always` for every dtype."""

    count: Annotated[int, Field(ge=0)] = 0
    ranges: dict[str, tuple[int, int]] = {}
    parameters: dict[str, tuple[float, ...]] = {}
    always: tuple[tuple[Positive, ...], ...] = ()


class Sweep(_Strict):
    """Every shape with every dtype and scale; `quick` bounds the dims of the subset for machines without a GPU."""

    shapes: Annotated[tuple[tuple[Positive, ...], ...], Field(min_length=1)]
    dtypes: Annotated[tuple[Dtype, ...], Field(min_length=1)]
    scales: Annotated[tuple[float, ...], Field(min_length=1)]
    quick: dict[str, Positive]
    telling: Telling | None = None
    holdout: Holdout = Holdout()


class Call(_Strict):
    """A baseline: an expression over the entry's arguments and `torch`, and a module to import for it."""

    call: Expression
    module: str = ""


class Curve(_Strict):
    """Shapes that are shown beside those that decide: how the kernel fares as one dim grows."""

    shapes: tuple[tuple[Positive, ...], ...]
    dtype: Dtype


class Bench(_Strict):
    """What to time. `bytes` and `flops` are expressions in the dims and `itemsize`.

    `baselines` by name, beside the reference and torch.compile of it, which are always there.
    """

    shapes: Annotated[tuple[tuple[Positive, ...], ...], Field(min_length=1)]
    dtypes: tuple[Dtype, ...]
    bytes: Expression
    flops: Expression
    baselines: Annotated[dict[str, Call], Field(max_length=4)] = {}
    curve: Curve | None = None


class OpSpec(_Strict):
    """op.yaml, checked."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: str
    entry: str
    dims: tuple[str, ...]
    inputs: dict[str, Input]
    parameters: dict[str, float] = {}
    outputs: dict[str, Output]
    semantics: str
    constraints: tuple[str, ...]
    sweep: Sweep
    tolerance: dict[Dtype, Tolerance]
    precision: Annotated[float, Field(ge=1)]
    bench: Bench
    host_operations: tuple[str, ...] = ()
    decision: dict[str, Any] = {}

    @property
    def function(self) -> str:
        """Name of the function that the kernel file exports."""
        return self.entry.split("(", 1)[0]

    @property
    def kernel_name(self) -> str:
        """Name of the one file that an attempt may change."""
        return f"{self.name}_triton.py"

    @property
    def reference(self) -> str:
        """Name of the reference function in reference.py."""
        return f"{self.name}_ref"

    @model_validator(mode="after")
    def _dims_are_known(self) -> OpSpec:
        known = set(self.dims)
        for name, shape in {**_shapes(self.inputs), **_shapes(self.outputs)}.items():
            if unknown := set(shape) - known:
                raise ValueError(f"{name}: shape uses {sorted(unknown)}; dims are {list(self.dims)}")
        telling = [self.sweep.telling.shape] if self.sweep.telling else []
        curve = self.bench.curve.shapes if self.bench.curve else ()
        if all(math.log2(sizes[-1]).is_integer() for sizes in self.bench.shapes):
            raise ValueError("bench.shapes: none has a last dim that is no power of two; one must")
        for sizes in (*self.sweep.shapes, *self.sweep.holdout.always, *telling, *self.bench.shapes, *curve):
            if len(sizes) != len(self.dims):
                raise ValueError(f"shape {list(sizes)} does not have the {len(self.dims)} dims {list(self.dims)}")
        return self

    @model_validator(mode="after")
    def _names_agree(self) -> OpSpec:
        if missing := set(self.sweep.dtypes) - set(self.tolerance):
            raise ValueError(f"tolerance: no entry for {sorted(missing)}")
        if bad := {name for name in (*self.sweep.quick, *self.sweep.holdout.ranges) if name not in self.dims}:
            raise ValueError(f"sweep: {sorted(bad)} are no dims; dims are {list(self.dims)}")
        telling = self.sweep.telling.parameters if self.sweep.telling else {}
        for where, names_ in (("holdout", self.sweep.holdout.parameters), ("telling", telling)):
            if bad := set(names_) - set(self.parameters):
                raise ValueError(f"sweep.{where}.parameters: {sorted(bad)} are no parameters")
        if bad := {output.dtype_of for output in self.outputs.values()} - set(self.inputs):
            raise ValueError(f"outputs: dtype_of {sorted(bad)} names no input")
        return self

    @model_validator(mode="after")
    def _entry_takes_the_inputs(self) -> OpSpec:
        try:
            arguments = ast.parse(f"def {self.entry}: ...").body[0].args  # type: ignore[attr-defined]
        except SyntaxError:
            raise ValueError(f"entry {self.entry!r} is no signature such as 'rmsnorm_triton(x, w, eps=1e-6)'") from None
        names = [argument.arg for argument in arguments.args]
        if names != [*self.inputs, *self.parameters]:
            raise ValueError(f"entry takes {names}; inputs and parameters are {[*self.inputs, *self.parameters]}")
        return self

    @model_validator(mode="after")
    def _baselines_are_calls(self) -> OpSpec:
        for name, baseline in self.bench.baselines.items():
            try:
                tree = ast.parse(baseline.call, mode="eval")
            except SyntaxError:
                raise ValueError(f"bench.baselines.{name}: {baseline.call!r} is no expression") from None
            known = {*self.inputs, *self.parameters, "torch", *dir(builtins), baseline.module.partition(".")[0]}
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if unknown := used - known:
                raise ValueError(f"bench.baselines.{name} uses {sorted(unknown)}; allowed are the arguments and torch")
        return self

    @model_validator(mode="after")
    def _thresholds_are_known(self) -> OpSpec:
        self.thresholds(Thresholds())
        return self

    def thresholds(self, default: Thresholds) -> Thresholds:
        """The thresholds of a decision, with those that this op sets otherwise."""
        known = [field.name for field in fields(Thresholds)]
        if unknown := set(self.decision) - set(known):
            raise ValueError(f"decision: unknown {sorted(unknown)}; known are {', '.join(known)}")
        return TypeAdapter(Thresholds).validate_python(asdict(default) | self.decision)

    @model_validator(mode="after")
    def _expressions_are_arithmetic(self) -> OpSpec:
        for expression in (self.bench.bytes, self.bench.flops):
            used = {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}
            if unknown := used - {*self.dims, "itemsize"}:
                raise ValueError(f"bench: {expression!r} uses {sorted(unknown)}; allowed are the dims and itemsize")
        return self


def _shapes(tensors: dict[str, Input] | dict[str, Output]) -> dict[str, tuple[str, ...]]:
    return {name: tensor.shape for name, tensor in tensors.items()}


class Op:
    """An op folder, read and checked."""

    def __init__(self, folder: Path, spec: OpSpec, reference: str) -> None:
        self.folder = folder
        self.spec = spec
        self.reference = reference

    @property
    def name(self) -> str:
        """The op's name, which is also its folder's."""
        return self.spec.name

    @property
    def recorded(self) -> Path:
        """The folder of recorded replies; it need not exist."""
        return self.folder / "recorded"

    def workspace_files(self) -> dict[str, bytes]:
        """The baseline of a workspace: four files that stand alone, by name."""
        environment = resources.environment(resources.templates())
        rendered = {
            name: environment.get_template(f"{name}.j2").render(op=self.spec)
            for name in ("SPEC.md", "test_correctness.py", "bench.py")
        }
        return {name: text.encode() for name, text in {**rendered, "ref.py": self.reference}.items()}


def names(root: Path) -> list[str]:
    """All ops below `root`, sorted."""
    return sorted(path.parent.name for path in root.glob("*/op.yaml"))


def load(name: str, root: Path) -> Op:
    """The op `name` below `root`. Raises UsageError when it is not there or its folder is wrong."""
    folder = root / name
    known = names(root)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"no op {name!r} in {root}: {hint}known ops are {', '.join(known) or 'none'}")
    spec = _read_spec(folder / "op.yaml")
    if spec.name != name:
        raise UsageError(f"{folder / 'op.yaml'}: name is {spec.name!r}, but the folder is {name!r}; they must agree")
    return Op(folder, spec, _read_reference(folder / "reference.py", spec.reference))


def _read_spec(path: Path) -> OpSpec:
    try:
        return OpSpec.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "op"
        raise UsageError(f"{path}: {where}: {first['msg']} ({error.error_count()} problem(s) in all)") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _read_reference(path: Path, function: str) -> str:
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body):
        raise UsageError(f"{path} defines no function {function}; the op's reference must have that name")
    return source
