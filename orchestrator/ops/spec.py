"""op.yaml as a whole, and the rules that hold between its parts: names agree, shapes fit the dims, text is arithmetic.

Owns what an op may say. What of it is text for a template was seen to be what it claims: nothing else is run.
"""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import asdict, fields
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, model_validator

from orchestrator import arithmetic
from orchestrator.decide import Thresholds
from orchestrator.ops.parts import (
    LAYOUTS,
    Bench,
    Dtype,
    Input,
    IntegerResult,
    Output,
    Strict,
    Sweep,
    Tag,
    Tolerance,
)
from orchestrator.records import Parameter

NAME = r"[a-z][a-z0-9_]*"  # of an op, and so of its folder, its files and functions


def kernel_name(op: str) -> str:
    """Name of the file that holds a kernel of that op."""
    return f"{op}_triton.py"


class OpSpec(Strict):
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
    repeatable: bool = False  # the same call gives the same bits: no atomics that add in another order each time
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
            used = {word for expression in expressions for word in arithmetic.names(expression, name)}
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
        if kinds & set(LAYOUTS) and not any(one.strided for one in self.inputs.values()):
            raise ValueError(f"sweep.telling.values: {sorted(kinds & set(LAYOUTS))} need an input with strided: true")
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
            used = arithmetic.names(expression, "bench")
            if unknown := used - {*self.dims, "itemsize"}:
                raise ValueError(f"bench: {expression!r} uses {sorted(unknown)}; allowed are the dims and itemsize")
        return self
