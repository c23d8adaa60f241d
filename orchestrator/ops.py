"""An op is a folder: op.yaml (all that is data), reference.py (all that is code), recorded/ (replies to replay).

Owns reading and checking such a folder, and rendering the four files of a workspace from it: SPEC.md, ref.py,
test_correctness.py and bench.py. Imports no torch: the rendered files do, in processes of their own.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from orchestrator import resources
from orchestrator.decide import Thresholds
from orchestrator.errors import UsageError
from orchestrator.records import Parameter
from orchestrator.text import printable

# float64 for ops whose gradients are to be exact: there a kernel that computes in float32 is refused.
Dtype = Literal["float32", "float16", "bfloat16", "float64"]
IntegerDtype = Literal["int32", "int64"]
IntegerResult = Literal["int8", "int32", "int64"]
# Kinds of values that tell; the last two are not values but places in memory, of inputs that are `strided`.
Values = Literal[
    "rows",
    "columns",
    "offset",
    "zero_row",
    "nan",
    "inf",
    "masked",
    "masked_row",
    "low",
    "large",
    "peak",
    "sliced",
    "transposed",
]
# Pages of prompts/references, which a prompt quotes.
Tag = Literal[
    "masking",
    "logsumexp",
    "online_softmax",
    "semiring",
    "ring_buffer",
    "tiles",
    "split_reduction",
    "persistent",
]
VALUES: tuple[str, ...] = get_args(Values)
_LAYOUTS = {"sliced", "transposed"}
Size = Annotated[int, Field(ge=0)]  # 0: an empty input, for which an empty result is to come back
Positive = Annotated[int, Field(gt=0)]
Expression = Annotated[str, Field(min_length=1)]
NAME = r"[a-z][a-z0-9_]*"  # of an op, and so of its folder, its files and functions


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(_Strict):
    """A tensor argument. A size of its shape is a dim, or arithmetic over dims.

    Floats are standard normal, times the case's scale where `scaled`, of the case's dtype unless `dtype` fixes another.
    Integers have a `range`, from its first to before its second. One that is `strided` need not be contiguous.
    """

    shape: tuple[Expression, ...]
    dtype: Dtype | IntegerDtype | None = None
    range: tuple[int | Expression, int | Expression] | None = None
    scaled: bool = False
    strided: bool = False

    @property
    def integer(self) -> bool:
        """Whether it holds integers."""
        return self.range is not None

    @model_validator(mode="after")
    def _integers_have_a_range(self) -> Input:
        if (self.dtype in get_args(IntegerDtype)) != self.integer:
            raise ValueError("an input with an integer dtype needs a range, such as [0, N], and no other has one")
        if self.integer and self.scaled:
            raise ValueError("an integer input cannot be scaled")
        return self


class Output(_Strict):
    """A result; its dtype is that of the input named by `dtype_of`, or `dtype`, which may be an integer one.

    With `in_place` it is written into that input, which is returned: the tensor that was passed.
    """

    shape: tuple[Expression, ...]
    dtype_of: str | None = None
    dtype: Dtype | IntegerResult | None = None
    in_place: str | None = None

    @model_validator(mode="after")
    def _one_dtype(self) -> Output:
        if (self.dtype_of is None) == (self.dtype is None):
            raise ValueError("an output has either dtype_of, the name of an input, or dtype")
        return self


class Tolerance(_Strict):
    """|got - want| <= atol + rtol * |want|: of the case's dtype for floats, of the result's own for integers."""

    rtol: Annotated[float, Field(ge=0)]
    atol: Annotated[float, Field(ge=0)]


class Telling(_Strict):
    """Cases with values that expose plausible but wrong kernels: each kind, each other parameter, for every dtype.

    All at `shape`; kinds named in `elsewhere` also at the shape given there.
    """

    shape: tuple[Positive, ...]
    values: tuple[Values, ...] = ()
    parameters: dict[str, Parameter] = {}
    elsewhere: dict[Values, tuple[Positive, ...]] = {}


class Holdout(_Strict):
    """Cases drawn anew for each verdict: `count` from the ranges, and the shapes in `always` for every dtype.

    A range is its first and last size, and where a third is given the step between sizes: [64, 128, 64] is 64 or 128.
    """

    count: Annotated[int, Field(ge=0)] = 0
    ranges: dict[str, tuple[int, int] | tuple[int, int, Positive]] = {}
    parameters: dict[str, tuple[Parameter, ...]] = {}
    always: tuple[tuple[Size, ...], ...] = ()


class Large(_Strict):
    """A case whose offsets pass 2^31 elements, for a GPU and the full sweep.

    The reference of all of it would not fit: it is computed for a part of `along` at a time, a dim along which the
    results do not depend on each other.
    """

    shape: tuple[Positive, ...]
    dtype: Dtype
    along: str


class Sweep(_Strict):
    """Every shape with every dtype and scale; `quick` bounds the dims of the subset for machines without a GPU."""

    shapes: Annotated[tuple[tuple[Size, ...], ...], Field(min_length=1)]
    dtypes: Annotated[tuple[Dtype, ...], Field(min_length=1)]
    scales: Annotated[tuple[float, ...], Field(min_length=1)]
    quick: dict[str, Positive]
    telling: Telling | None = None
    holdout: Holdout = Holdout()
    large: Large | None = None


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

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    title: str
    tags: tuple[Tag, ...] = ()  # patterns that whoever writes the kernel is shown
    approved: bool = True  # false: a draft, on which no run starts until a person has read it
    entry: str
    dims: tuple[str, ...]
    inputs: dict[str, Input]
    parameters: dict[str, Parameter] = {}
    outputs: Annotated[dict[str, Output], Field(min_length=1)]
    semantics: str
    constraints: tuple[str, ...]
    sweep: Sweep
    tolerance: dict[Dtype | IntegerResult, Tolerance]
    precision: Annotated[float, Field(ge=1)]
    bench: Bench
    host_operations: tuple[str, ...] = ()
    equivalent_decoys: dict[str, str] = {}
    decision: dict[str, Any] = {}
    entry_checks: bool = False  # the entry is to check what it assumes of its arguments; a kernel's report says if not

    @property
    def function(self) -> str:
        """Name of the function that the kernel file exports."""
        return self.entry.split("(", 1)[0]

    @property
    def kernel_name(self) -> str:
        """Name of the one file that an attempt may change."""
        return kernel_name(self.name)

    @property
    def reference(self) -> str:
        """Name of the reference function in reference.py."""
        return f"{self.name}_ref"

    @property
    def in_place(self) -> dict[str, int]:
        """Inputs that the entry overwrites, and the number of the result that is then in them."""
        return {one.in_place: at for at, one in enumerate(self.outputs.values()) if one.in_place is not None}

    @model_validator(mode="after")
    def _dims_are_known(self) -> OpSpec:
        known = set(self.dims)
        sizes = {f"inputs.{name}": (*one.shape, *(one.range or ())) for name, one in self.inputs.items()}
        sizes |= {f"outputs.{name}": one.shape for name, one in self.outputs.items()}
        for name, expressions in sizes.items():
            used = {word for expression in expressions for word in _words(expression, name)}
            if unknown := used - known:
                raise ValueError(f"{name} uses {sorted(unknown)}; dims are {list(self.dims)}")
        told = self.sweep.telling
        telling = [told.shape, *told.elsewhere.values()] if told else []
        large = [self.sweep.large.shape] if self.sweep.large else []
        curve = self.bench.curve.shapes if self.bench.curve else ()
        if all(math.log2(shape[-1]).is_integer() for shape in self.bench.shapes):
            raise ValueError("bench.shapes: none has a last dim that is no power of two; one must")
        for shape in (*self.sweep.shapes, *self.sweep.holdout.always, *telling, *large, *self.bench.shapes, *curve):
            if len(shape) != len(self.dims):
                raise ValueError(f"shape {list(shape)} does not have the {len(self.dims)} dims {list(self.dims)}")
        return self

    @model_validator(mode="after")
    def _names_agree(self) -> OpSpec:
        integers = {str(one.dtype) for one in self.outputs.values() if one.dtype in get_args(IntegerResult)}
        if missing := {*map(str, self.sweep.dtypes), *integers} - set(self.tolerance):
            raise ValueError(f"tolerance: no entry for {sorted(missing)}")
        floats = {name: one for name, one in self.tolerance.items() if name in get_args(Dtype)}
        if exact := sorted(name for name, one in floats.items() if not (one.rtol and one.atol)):
            raise ValueError(f"tolerance: rtol and atol of {exact} must be above 0; only an integer dtype's may be 0")
        if bad := {name for name in (*self.sweep.quick, *self.sweep.holdout.ranges) if name not in self.dims}:
            raise ValueError(f"sweep: {sorted(bad)} are no dims; dims are {list(self.dims)}")
        telling = self.sweep.telling.parameters if self.sweep.telling else {}
        for where, names_ in (("holdout", self.sweep.holdout.parameters), ("telling", telling)):
            if bad := set(names_) - set(self.parameters):
                raise ValueError(f"sweep.{where}.parameters: {sorted(bad)} are no parameters")
        drawn = self.sweep.holdout
        if drawn.count and (unbounded := sorted(set(self.dims) - set(drawn.ranges))):
            raise ValueError(f"sweep.holdout.ranges: no range for {unbounded}, and {drawn.count} cases are to be drawn")
        kinds = set(self.sweep.telling.values) if self.sweep.telling else set()
        if kinds & _LAYOUTS and not any(one.strided for one in self.inputs.values()):
            raise ValueError(f"sweep.telling.values: {sorted(kinds & _LAYOUTS)} need an input with strided: true")
        return self

    @model_validator(mode="after")
    def _outputs_name_inputs(self) -> OpSpec:
        for name, output in self.outputs.items():
            for key, given in (("dtype_of", output.dtype_of), ("in_place", output.in_place)):
                if given is not None and given not in self.inputs:
                    raise ValueError(f"outputs.{name}: {key} {given!r} names no input; inputs are {list(self.inputs)}")
            if output.in_place is not None and self.inputs[output.in_place].strided:
                raise ValueError(f"outputs.{name}: in place of {output.in_place!r}, which may not be strided then")
            if output.in_place is not None and self.inputs[output.in_place].shape != output.shape:
                raise ValueError(f"outputs.{name}: in place of {output.in_place!r}, whose shape is another one")
        return self

    @model_validator(mode="after")
    def _large_can_be_parted(self) -> OpSpec:
        large = self.sweep.large
        if large is None:
            return self
        if large.dtype not in self.sweep.dtypes:
            raise ValueError(f"sweep.large.dtype: {large.dtype} is none of sweep.dtypes")
        parted = [one for one in self.inputs.values() if large.along in one.shape]
        if not parted or any(large.along not in one.shape for one in self.outputs.values()) or self.in_place:
            raise ValueError(
                f"sweep.large.along: an input and each output must have the axis {large.along}, none in place"
            )
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
            used = _words(expression, "bench")
            if unknown := used - {*self.dims, "itemsize"}:
                raise ValueError(f"bench: {expression!r} uses {sorted(unknown)}; allowed are the dims and itemsize")
        return self


def _words(expression: str | int, where: str) -> set[str]:
    """The names that arithmetic uses. Raises ValueError for anything else: it is written into files that are run."""
    allowed = (ast.Expression, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Name, ast.Load, ast.Constant)
    try:
        nodes = list(ast.walk(ast.parse(str(expression), mode="eval")))
    except SyntaxError:
        raise ValueError(f"{where}: {expression!r} is no arithmetic such as '2 * N'") from None
    if wrong := [node for node in nodes if not isinstance(node, allowed)]:
        raise ValueError(f"{where}: {expression!r} is no plain arithmetic: {ast.unparse(wrong[0])}")
    return {node.id for node in nodes if isinstance(node, ast.Name)}


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
    def like(self) -> dict[str, str]:
        """Kernels of the project that the op is for, by file name: how its house writes them. Mostly none."""
        return {path.name: path.read_text(encoding="utf-8") for path in sorted((self.folder / "like").glob("*.py"))}

    @property
    def recorded(self) -> Path:
        """The folder of recorded replies; it need not exist."""
        return self.folder / "recorded"

    @property
    def decoys(self) -> Path:
        """The op's own decoys; it need not exist."""
        return self.folder / "decoys.py"

    @property
    def _makes_inputs(self) -> bool:
        """Whether reference.py has a last word on the inputs."""
        return any(isinstance(node, ast.FunctionDef) and node.name == "make_inputs" for node in _body(self.reference))

    def workspace_files(self) -> dict[str, bytes]:
        """The baseline of a workspace: four files that stand alone, by name."""
        environment = resources.environment(resources.templates())
        rendered = {
            name: environment.get_template(f"{name}.j2").render(op=self.spec, makes_inputs=self._makes_inputs)
            for name in ("SPEC.md", "test_correctness.py", "bench.py")
        }
        return {name: text.encode() for name, text in {**rendered, "ref.py": self.reference}.items()}


def kernel_name(op: str) -> str:
    """Name of the file that holds a kernel of that op."""
    return f"{op}_triton.py"


def names(root: Path) -> list[str]:
    """All ops below `root`, sorted."""
    return sorted(path.parent.name for path in root.glob("[!.]*/op.yaml"))


def unknown(name: str, known: Sequence[str], where: str) -> UsageError:
    """What to say of a name that no op has."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return UsageError(f"no op {printable(repr(name))} in {where}: {hint}known ops are {', '.join(known) or 'none'}")


def load(name: str, root: Path) -> Op:
    """The op `name` below `root`. Raises UsageError when it is not there or its folder is wrong."""
    folder = root / name
    if not (folder / "op.yaml").is_file() or "/" in name:
        raise unknown(name, names(root), str(root))
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
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UsageError(f"{path}: {_problem(error.errors()[0])}{more}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _problem(found: Any) -> str:
    """What is wrong, and at which key; for a key that there is not, the nearest that there is."""
    where = ".".join(str(part) for part in found["loc"])
    if found["type"] == "extra_forbidden":
        models = [one for one in globals().values() if isinstance(one, type) and issubclass(one, _Strict)]
        given = str(found["loc"][-1])  # which may be a key, elsewhere
        known = sorted({name for model in models for name in model.model_fields} - {given})
        close = difflib.get_close_matches(given, known, n=1)
        return f"{where} is no key of an op" + (f"; did you mean {close[0]}?" if close else "")
    said = str(found["msg"]).removeprefix("Value error, ")
    return f"{where}: {said}" if where else said


def _body(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def _read_reference(path: Path, function: str) -> str:
    try:
        source = path.read_text(encoding="utf-8")
        body = _body(source)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == function for node in body):
        raise UsageError(f"{path} defines no function {function}; the op's reference must have that name")
    return source
