"""Rules about classes: their bases, their bodies, their magic methods, and what named records have for fields.

Owns what a class may look like; what its methods do is judged like any function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.policy import names
from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.values import Ref, bound_by
from orchestrator.source import Source


def allowed_magic(check: Check, name: str, parent: ast.AST) -> bool:
    """Whether a class may define that method: what makes an instance, and what calling one does."""
    if not isinstance(parent, ast.ClassDef):
        return False
    info = check.inference.classes[parent.name]
    if "torch.nn.Module" in info.bases:
        return name == "__init__"
    if "dataclasses.dataclass" in info.decorators:
        return name in ("__post_init__", "__call__", "__repr__", "__str__")
    plain = check.inference.bases(parent.name) <= names.PLAIN_BASES | names.ERRORS | set(check.inference.classes)
    return name in ("__init__", "__call__", "__repr__", "__str__") and plain


def klass(check: Check, node: ast.ClassDef, place: Place) -> Iterator[Remark]:
    """A class: its bases, and where it stands."""
    info = check.inference.classes[node.name]
    allowed = names.BASES | names.PLAIN_BASES | names.ERRORS
    allowed |= names.MEMBERS if names.ENUMS & set(info.bases) else set()
    for base, dotted in zip(node.bases, info.bases, strict=True):
        own = isinstance(base, ast.Name) and place.scope.resolve(dotted) is check.inference.module
        if own and dotted not in check.source.paths:  # ValueError of the file itself is no builtin
            yield from _inherits(check, base, node.name, dotted)
        elif dotted not in allowed:
            advice = "derive from torch.autograd.Function, torch.nn.Module, an Enum or an error, or write functions"
            yield check.forbidden(base, f"the base class {dotted or 'that is no plain name'}", advice)
    if set(info.decorators) - {"dataclasses.dataclass", "enum.unique"}:
        yield check.forbidden(node, "a class decorator that is not on the list", "use @dataclass or none")
    total = "typing.TypedDict" in info.bases and {keyword.arg for keyword in node.keywords} == {"total"}
    if node.keywords and not total:
        yield check.forbidden(node, "class keywords such as metaclass=", "leave them out")
    if not isinstance(place.parent, ast.Module):
        yield check.forbidden(node, "a class inside another block", "define classes at the top of the file")
    for statement in node.body:
        if not isinstance(statement, ast.FunctionDef):
            yield from _assigned_magic(check, statement)
    yield from _methods_bound_twice(check, node)


def _inherits(check: Check, base: ast.expr, name: str, dotted: str) -> Iterator[Remark]:
    """A plain class may derive from one plain class of the file, and from errors; what it inherits is followed."""
    inference = check.inference
    of_the_file = set(inference.classes)
    above = check.value(base).refs == {Ref("class", dotted)}
    above = above and inference.classes[dotted].node.lineno < inference.classes[name].node.lineno
    if not above or len(of_the_file & set(inference.classes[name].bases)) > 1:
        yield check.forbidden(base, f"the base class {dotted}", "derive from one class, defined above by that name")
    elif not inference.bases(name) <= names.PLAIN_BASES | names.ERRORS | of_the_file:
        yield check.forbidden(base, f"the base class {dotted}, which is no plain one", "derive from plain classes only")


def _assigned_magic(check: Check, node: ast.stmt) -> Iterator[Remark]:
    """`__call__ = f` in a class body makes a magic method of what is judged as a plain function."""
    bound = {name for part in ast.walk(node) for name in bound_by(part)}
    for name in sorted(bound - names.CLASS_MAGIC):
        if name.startswith("__") and name.endswith("__"):
            yield check.forbidden(node, f"the magic name {name} assigned in a class", "write methods by def")


def _methods_bound_twice(check: Check, node: ast.ClassDef) -> Iterator[Remark]:
    """A method's name means the method: of two, or of a method and a field, only one would be judged as called."""
    methods = [statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)]
    others = [statement for statement in node.body if not isinstance(statement, ast.FunctionDef)]
    fields = {name for statement in others for part in ast.walk(statement) for name in bound_by(part)}
    inherited = {name for name in fields if check.inference.method(node.name, name)}
    for name in sorted({name for name in methods if methods.count(name) > 1} | inherited):
        yield check.forbidden(node, f"the name {name} is bound twice in {node.name}", "name methods and fields once")


def record_fields(source: Source) -> Iterator[str]:
    """The fields of named tuples and namespaces that are made by a call, where they are written out."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        if source.dotted(node.func) == "types.SimpleNamespace":
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)
        elif source.dotted(node.func) == "collections.namedtuple" and len(node.args) > 1:
            parts = [part.value for part in ast.walk(node.args[1]) if isinstance(part, ast.Constant)]
            yield from (name for part in parts if isinstance(part, str) for name in part.replace(",", " ").split())


def class_body(check: Check, node: ast.stmt, place: Place) -> Iterator[Remark]:
    """A class holds methods, fields and constants."""
    allowed = (ast.FunctionDef, ast.AnnAssign, ast.Assign, ast.Pass)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(place.parent, ast.ClassDef) and not isinstance(node, allowed) and not docstring:
        yield check.forbidden(node, "a statement in a class body", "keep methods, fields and constants only")
