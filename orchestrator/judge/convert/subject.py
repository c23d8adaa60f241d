"""The code that was asked for as an object that can be called: its file imported, its class constructed.

What a person's code raises on the way is a `Problem`: a sentence that says what is missing and how to give it.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge.convert.seen import seen
from orchestrator.probed import Built, State

_LITERAL = (bool, int, float, str, type(None))
_SEEDS = (1, 2)
_SHOWN = 300
_FOLDER = "_the_files_folder"  # a package of this name holds a file that is in none


class Problem(Exception):
    """What stands in the way, for the person."""


@dataclass(frozen=True)
class Asked:
    """The target's file, and its name in it; `init` are a constructor's arguments, where an example gives them."""

    path: Path
    first: str
    method: str = ""
    cut: str = (
        ""  # its code as it was cut out, for a file that imports what is not installed and the target does not use
    )
    init: Mapping[str, Any] | list[Any] | None = None


@dataclass(frozen=True)
class Subject:
    """A function to call, the object that it belongs to, and how that was constructed."""

    call: Callable[..., Any]
    owner: Any = None
    built: Built | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def imported(asked: Asked) -> ModuleType:
    """The target's module; of a file that imports what is not installed, the code that was cut out. Raises Problem."""
    try:
        return _imported(asked.path)
    except ModuleNotFoundError as error:
        module = ModuleType(_FOLDER)
        module.__doc__ = (
            f"its file imports {error.name}, which is not installed: the code that was cut out was run instead"
        )
        try:
            exec(compile(asked.cut, str(asked.path), "exec"), vars(module))
        except BaseException as again:  # noqa: BLE001 - the person's code, executed
            raise Problem(f"{asked.path.name} cannot be imported: {said(error)}; install it here") from again
        return module
    except BaseException as error:  # noqa: BLE001 - the person's file, executed
        raise Problem(f"{asked.path.name} cannot be imported: {said(error)}") from error


def _imported(path: Path) -> ModuleType:
    """The module of a file, in the package that it belongs to; a folder that says of no package is taken as one."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    sys.path[:0] = [str(path.parent), str(root)]
    parts = path.relative_to(root).with_suffix("").parts
    if root == path.parent:
        package = ModuleType(_FOLDER)
        package.__path__ = [str(root)]
        sys.modules[_FOLDER] = package
        parts = (_FOLDER, path.stem)
    return importlib.import_module(".".join(parts))


def said(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_SHOWN]}" if text else type(error).__name__


def subject(module: ModuleType, asked: Asked) -> Subject:
    """What is to be called. Raises Problem."""
    found = getattr(module, asked.first)
    if not inspect.isclass(found):
        return Subject(found)
    given, opaque = _constructor_arguments(module, found, asked)
    one, other = (constructed(found, given, seed) for seed in _SEEDS)
    call = getattr(one, asked.method) if asked.method else one
    if isinstance(one, torch.nn.Module) and not asked.method:
        call = one.forward
    if not callable(call):
        raise Problem(f"an object of {asked.first} cannot be called: name a method, {asked.first}.METHOD")
    literal = {name: repr(value) for name, value in given.items() if name not in opaque}
    is_module = isinstance(one, torch.nn.Module)
    built = Built(_state(one, other), _sizes(given), asked.first, literal, opaque, is_module)
    return Subject(call, one, built, given)


def constructed(kind: type, given: Mapping[str, Any], seed: int) -> Any:
    """An object of the class, on the CPU and in eval mode. Raises Problem."""
    torch.manual_seed(seed)
    try:
        made = kind(**copy.deepcopy(dict(given)))
    except BaseException as error:  # noqa: BLE001 - the person's constructor
        raise Problem(f"{kind.__name__} cannot be constructed: {said(error)}") from error
    return made.cpu().eval() if isinstance(made, torch.nn.Module) else made


def changed(given: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """A constructor's arguments with other sizes, each by its path: an argument, or an attribute of one."""
    result = {name: copy.copy(value) for name, value in given.items()}
    for path, size in sizes.items():
        name, _, attribute = path.partition(".")
        if attribute:
            setattr(result[name], attribute, size)
        else:
            result[name] = size
    return result


def _constructor_arguments(module: ModuleType, kind: type, asked: Asked) -> tuple[dict[str, Any], dict[str, int]]:
    """The arguments by name, and of those that are objects the place in what get_init_inputs() returns."""
    values = asked.init
    from_file = values is None and hasattr(module, "get_init_inputs")
    if from_file:
        values = _called(module.get_init_inputs, "get_init_inputs()")
    positional, named = _split(values if values is not None else [])
    try:
        bound = inspect.signature(kind).bind(*positional, **named)
    except TypeError as error:
        raise Problem(
            f"the constructor of {kind.__name__} {inspect.signature(kind)}: {error}; give its arguments in the example "
            f"(init: {{name: value}}), or by a get_init_inputs() in the file that returns them as a list"
        ) from error
    given = {name: value for name, value in bound.arguments.items() if not _empty(value)}
    opaque = {name: _place(value, positional, name) for name, value in given.items() if not _is_literal(value)}
    if opaque and not from_file:
        raise Problem(
            f"the constructor of {kind.__name__} was given {', '.join(opaque)}, which is no number or text: add a "
            f"get_init_inputs() to the file that returns the constructor's arguments as a list"
        )
    return given, opaque


def _empty(value: Any) -> bool:
    return bool(value == () or value == {})


def _place(value: Any, positional: list[Any], name: str) -> int:
    for at, one in enumerate(positional):
        if one is value:
            return at
    raise Problem(f"get_init_inputs() gives {name} by name and it is an object: return it in a list, by position")


def _split(values: Any) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(values, Mapping):
        return [], dict(values)
    if isinstance(values, list | tuple):
        if len(values) == 2 and isinstance(values[0], list) and isinstance(values[1], dict):  # [[...], {...}]
            return list(values[0]), dict(values[1])
        return list(values), {}
    raise Problem("get_init_inputs() must return a list of the constructor's arguments, or a mapping of them by name")


def _is_literal(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_literal(one) for one in value)
    return isinstance(value, _LITERAL)


def _called(function: Callable[[], Any], name: str) -> Any:
    try:
        return function()
    except BaseException as error:  # noqa: BLE001 - the person's function
        raise Problem(f"{name} of the file raised {said(error)}") from error


def _sizes(given: Mapping[str, Any]) -> dict[str, int]:
    found = {name: value for name, value in given.items() if _whole(value)}
    for name, value in given.items():
        if not _is_literal(value):
            found |= (
                {f"{name}.{key}": size for key, size in vars(value).items() if _whole(size)}
                if hasattr(value, "__dict__")
                else {}
            )
    return found


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 1


def _state(one: Any, other: Any) -> dict[str, State]:
    """Parameters and buffers of one of two objects that were constructed alike."""
    if not isinstance(one, torch.nn.Module):
        return {}
    twins = dict([*other.named_parameters(), *other.named_buffers()])
    parameters = {name: State(seen(tensor), True) for name, tensor in one.named_parameters()}
    buffers = {name: State(seen(tensor), False, _computed(tensor, twins[name])) for name, tensor in one.named_buffers()}
    return parameters | buffers


def _computed(tensor: torch.Tensor, twin: torch.Tensor) -> bool:
    """Whether the constructor computes it: the same again, and not merely a value to start from."""
    if not tensor.is_floating_point():
        return True
    varied = bool((tensor != tensor.reshape(-1)[:1]).any())
    return not tensor.numel() or (bool((tensor == twin).all()) and varied)
