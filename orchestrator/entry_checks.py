"""Whether an entry says what it assumes of its arguments, and checks it.

Reads the entry's docstring and its conditions that raise, in the file alone. What it finds lacking is a note in the
report and never a refusal: there are honest ways of checking that a reader of syntax does not see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.ops.spec import OpSpec
from orchestrator.records import Finding
from orchestrator.signature import entry_of
from orchestrator.source import FunctionNode, Source, read

# What is assumed: words of a docstring, and attributes of a tensor that a check of it reads.
_ASSUMED = {
    "shapes": (("shape", "size", "dim", "("), {"shape", "ndim", "size", "dim", "numel"}),
    "dtypes": (("dtype", "float", "int"), {"dtype", "is_floating_point", "element_size"}),
    "the device": (("device", "gpu", "cuda"), {"device", "is_cuda", "get_device"}),
    "contiguity": (("contiguous", "stride"), {"is_contiguous", "stride"}),
}


def notes(data: bytes, spec: OpSpec) -> tuple[str, ...]:
    """What the entry's docstring does not state, and what the entry does not check."""
    source = read(data, spec.kernel_name)
    entry = None if isinstance(source, Finding) else entry_of(source, spec.function)
    if isinstance(source, Finding) or entry is None:
        return ()
    said = (ast.get_docstring(entry) or "").lower()
    tested = [node for test in _conditions(source, entry) for node in ast.walk(test)]
    read_of = {node.attr for node in tested if isinstance(node, ast.Attribute)}
    unsaid = [what for what, (words, _) in _ASSUMED.items() if not any(word in said for word in words)]
    unchecked = [what for what, (_, attributes) in _ASSUMED.items() if not attributes & read_of]
    found = []
    if unsaid:
        found.append(f"the docstring of {spec.function} does not state what it assumes of {', '.join(unsaid)}")
    if unchecked:
        found.append(f"{spec.function} does not check {', '.join(unchecked)} before it launches, and raise")
    return tuple(found)


def _conditions(source: Source, entry: FunctionNode) -> Iterator[ast.expr]:
    """Conditions under which the entry raises, and those of the functions of the file that it calls."""
    calls = [node.func for node in ast.walk(entry) if isinstance(node, ast.Call)]
    called = {function.id for function in calls if isinstance(function, ast.Name)}
    helpers = [one.node for one in source.functions if one.name in called and not one.kernel]
    for function in (entry, *helpers):
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _raises(node)):
                yield node.test


def _raises(branch: ast.If) -> bool:
    return any(isinstance(node, ast.Raise) for node in ast.walk(branch))
