"""Rules about the shape of the file: imports, bindings, statements, decorators, code that runs at import.

Owns what does not need to know whether a value is a tensor.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from orchestrator.policy import classes, names
from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.mentions import WRITE_A_KERNEL, path
from orchestrator.policy.values import bound_by
from orchestrator.records import Finding, Status
from orchestrator.source import is_demo

AT_IMPORT = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.If,
    ast.Try,
    ast.For,
    ast.Pass,
    ast.Assert,
    ast.Raise,
)
IMPORT_CALLS = ("warnings.filterwarnings", "warnings.simplefilter", "torch.library.register_autograd",
                "torch.library.register_fake", "triton.set_allocator")  # fmt: skip
MAX_SITES = 100  # bindings of one name at the top of a file
MUST_BE_DEFS = "define names once, with def, class or import"


# --- imports


def imported(check: Check, node: ast.Import | ast.ImportFrom, place: Place) -> Iterator[Remark]:
    """An import, wherever it stands."""
    for item in check.source.imports:
        if item.node is node:
            if item.path.endswith(".*"):
                yield check.forbidden(node, "import * hides which names the file uses", "import names one by one")
            else:
                unused = place.at_import and item.bound not in check.mentioned and "._" not in item.path
                for remark in _one_import(check, node, item.bound, item.path, item.module, place):
                    if not (unused and isinstance(remark, Finding) and remark.status is Status.FALLBACK):
                        yield remark


def _one_import(check: Check, node: ast.stmt, bound: str, dotted: str, module: str, place: Place) -> Iterator[Remark]:
    from_import = isinstance(node, ast.ImportFrom)
    if _misleading(bound, dotted):
        yield check.forbidden(
            node, f"{dotted} imported under the name {bound}", "import torch, triton, and triton.language as tl"
        )
    if module not in names.MODULES:
        yield from _unknown_module(check, node, module, place)
    elif from_import and dotted not in names.MODULES:
        yield from path(check, node, dotted, place)


def _misleading(bound: str, dotted: str) -> bool:
    """An alias that is another module's name, or another name for torch or triton."""
    expected = names.CANONICAL.get(bound)
    if expected is not None:
        return dotted != expected
    other = bound in names.MODULES and bound != dotted and not dotted.endswith(f".{bound}")
    return other or dotted in ("torch", "triton")


def _unknown_module(check: Check, node: ast.stmt, module: str, place: Place) -> Iterator[Remark]:
    if place.demo and (module == "triton.testing" or module.split(".")[0] not in ("torch", "triton", "")):
        return
    if module.startswith("torch.") and not module.startswith(names.TORCH_FORBIDDEN):
        yield check.fallback(node, f"{module} computes in torch", WRITE_A_KERNEL)
    else:
        advice = "import only torch, triton, triton.language and plain standard modules such as math and functools"
        yield check.forbidden(node, f"the module {module} is not on the list of allowed imports", advice)


# --- statements


def statement(check: Check, node: ast.stmt, place: Place) -> Iterator[Remark]:
    """What may run while the file is imported: definitions and constants."""
    if not place.at_import or isinstance(place.parent, ast.ClassDef):
        return
    if not isinstance(node, AT_IMPORT):
        yield check.forbidden(node, "code that runs when the file is imported", "keep only imports, constants and defs")
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield from _import_call(check, node)


def _import_call(check: Check, node: ast.Expr) -> Iterator[Remark]:
    call = node.value
    if isinstance(call, ast.Call):
        function = call.func.func if isinstance(call.func, ast.Call) else call.func
        if check.source.dotted(function) in IMPORT_CALLS or check.value(function).of("registrar"):
            return
        if isinstance(function, ast.Attribute) and function.attr in names.MUTATORS:
            return
    yield check.forbidden(node, "a call made when the file is imported", "keep only imports, constants and defs")


def demo(check: Check, node: ast.If, place: Place) -> Iterator[Remark]:
    """A demo block is dead in the judge. It may compute in torch, but reach no further than the rest of the file."""
    if is_demo(node) and isinstance(place.function, ast.Module):
        yield check.note(node, "the block under __main__ never runs in the judge and is not part of the kernel")


def refused(check: Check, node: ast.stmt | ast.expr, place: Place) -> Iterator[Remark]:
    """Statements that no kernel file needs."""
    what = {
        ast.Global: ("global", "pass values as arguments; keep no state between calls"),
        ast.Nonlocal: ("nonlocal", "pass values as arguments; keep no state between calls"),
        ast.AsyncFunctionDef: ("async def", "write a plain def"),
        ast.AsyncFor: ("async for", "write a plain loop"),
        ast.AsyncWith: ("async with", "write a plain with"),
        ast.Await: ("await", "write plain code"),
    }[type(node)]
    yield check.forbidden(node, f"{what[0]} is not allowed", what[1])


def deleted(check: Check, node: ast.Delete, place: Place) -> Iterator[Remark]:
    """`del` frees a local; it does not remove a definition."""
    for target in node.targets:
        if isinstance(target, ast.Attribute) or (isinstance(target, ast.Name) and target.id in check.source.paths):
            yield check.forbidden(node, "del of an import or an attribute", "leave it out")


def tried(check: Check, node: ast.Try, place: Place) -> Iterator[Remark]:
    """`try` may choose between imports, or ask about the machine, and do nothing else."""
    handlers = [statement for handler in node.handlers for statement in handler.body]
    if all(_harmless(check, s) for s in [*node.body, *handlers, *node.orelse]) and not node.finalbody:
        return
    advice = "let errors out: a kernel that fails must be seen to fail. try is for imports and device queries only"
    yield check.forbidden(node, "try around code that is not an import", advice)


def _harmless(check: Check, node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Raise() | ast.Try():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name()], value=value) | ast.Return(value=ast.expr() as value):
            return _asks(check, value)
    return False


def _asks(check: Check, value: ast.expr) -> bool:
    """Whether an expression is a constant, a name, or a question about the machine."""
    match value:
        case ast.Constant() | ast.Name():
            return True
        case ast.Attribute(value=owner):
            return _asks(check, owner)
        case ast.Call(func=function, args=args, keywords=[]):
            return check.source.dotted(function) in names.ASKING and all(_asks(check, arg) for arg in args)
    return False


def within(check: Check, node: ast.With, place: Place) -> Iterator[Remark]:
    """`with` may guard a device or switch gradients off."""
    for item in node.items:
        value = check.value(item.context_expr)
        kinds = {ref.kind for ref in value.refs}
        guarding = bool(kinds & {"guard", "manager"}) and kinds <= {"guard", "manager", "pass"}
        if not guarding and not place.demo:
            advice = "use with only for torch.cuda.device(x.device) or torch.no_grad()"
            yield check.forbidden(node, "with on something that is not a device guard", advice)
        elif "guard" in kinds and item.optional_vars is not None:
            yield check.forbidden(node, "with ... as on a device guard", "leave out the as")


# --- bindings


def stored_attribute(check: Check, node: ast.Attribute, place: Place) -> Iterator[Remark]:
    """Only ctx, and self of a module or a dataclass, take attributes."""
    if isinstance(node.ctx, ast.Load) or place.kernel:
        return
    owner = check.value(node.value)
    own = bool(owner.refs) and all(ref.kind in ("ctx", "inst") for ref in owner.refs) and not owner.tensor
    known = check.inference
    hides = any(
        known.of_error(str(ref.key), node.attr) or known.method(str(ref.key), node.attr) for ref in owner.of("inst")
    )
    if own and not node.attr.startswith("__") and not hides:
        return
    advice = "assign to plain names; attributes only on ctx of an autograd.Function or self of an nn.Module"
    yield check.forbidden(node, f"assignment to the attribute {node.attr}", advice)


def shadowed(check: Check, node: ast.AST, place: Place) -> Iterator[Remark]:
    """Inside functions, the names of modules keep their meaning."""
    if isinstance(place.function, ast.Module) or isinstance(node, ast.Import | ast.ImportFrom):
        return
    for name in bound_by(node):
        if _is_module(check, name):
            yield check.forbidden(node, f"the name {name} is rebound", MUST_BE_DEFS)


def parameter(check: Check, node: ast.arg, place: Place) -> Iterator[Remark]:
    """Parameters do not hide modules either."""
    if _is_module(check, node.arg):
        yield check.forbidden(node, f"the name {node.arg} is rebound", MUST_BE_DEFS)


def _is_module(check: Check, name: str) -> bool:
    return name in names.CANONICAL or check.source.paths.get(name) in names.MODULES


def rebound(check: Check) -> Iterator[Remark]:
    """A name bound at the top by def, class or import is bound once; branches of one try or if are alternatives."""
    sites: dict[str, list[tuple[ast.AST, tuple[tuple[int, int], ...]]]] = {}
    for node, branch in _top_level(check.source.tree.body, ()):
        for name in bound_by(node) | _targets(node):
            others = sites.setdefault(name, [])
            twice = any(_clash(check, node, other) and not _alternative(branch, arm) for other, arm in others)
            if name != "_" and (twice or len(others) > MAX_SITES):
                yield check.forbidden(node, f"the name {name} is bound twice", MUST_BE_DEFS)
            elif len(others) <= MAX_SITES:
                others.append((node, branch))


def builtin_names(check: Check) -> Iterator[Remark]:
    """A builtin that is refused is not bound at the top either: where that never runs, the name is the builtin.

    Nor is what Python reads there: by another `__name__` the block under `__main__` would run in the judge.
    """
    for label in sorted(check.inference.module.names - names.BUILTINS - {"input"}):
        magic = label.startswith("__") and label.endswith("__")
        if label not in names.MODULE_MAGIC if magic else hasattr(builtins, label):
            node = next(node for node in ast.walk(check.source.tree) if label in bound_by(node))
            whose = "Python's" if magic else "a builtin's"
            yield check.forbidden(node, f"the name {label} at the top of the file is {whose}", "name it otherwise")


def _targets(node: ast.AST) -> set[str]:
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.If, ast.For, ast.While, ast.With)
    if isinstance(node, (*inner, ast.Import, ast.ImportFrom)):
        return set()
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)}


def _clash(check: Check, node: ast.AST, other: ast.AST) -> bool:
    defining = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    both_imports = isinstance(node, ast.Import) and isinstance(other, ast.Import)
    same = both_imports and {a.name.split(".")[0] for a in node.names} & {a.name.split(".")[0] for a in other.names}  # type: ignore[attr-defined]
    return isinstance(node, defining) | isinstance(other, defining) and not same


def _alternative(branch: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    return any(a == b and arm != other_arm for (a, arm) in branch for (b, other_arm) in other)


def _top_level(
    body: list[ast.stmt], branch: tuple[tuple[int, int], ...]
) -> Iterator[tuple[ast.AST, tuple[tuple[int, int], ...]]]:
    for node in body:
        yield node, branch
        arms: list[list[ast.stmt]] = []
        if isinstance(node, ast.Try):
            arms = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers), node.finalbody]
        elif isinstance(node, ast.If):
            arms = [node.body, node.orelse]
        for number, arm in enumerate(arms):
            yield from _top_level(arm, (*branch, (id(node), number)))


# --- functions


def function(check: Check, node: ast.FunctionDef, place: Place) -> Iterator[Remark]:
    """A def: its decorators, and its name when it is magic."""
    if node.name.startswith("__") and not classes.allowed_magic(check, node.name, place.parent):
        advice = "write plain methods; of the magic ones a plain class may have __init__, __call__ and __repr__"
        yield check.forbidden(node, f"the magic method {node.name}", advice)
    info = check.inference.functions[node]
    for decorator, dotted in zip(node.decorator_list, info.decorators, strict=True):
        if dotted in names.DECORATORS and not place.demo and not _is_decorator(check, decorator, dotted):
            yield check.forbidden(decorator, f"{dotted} by a name that stands for something else", MUST_BE_DEFS)
        if dotted in names.DECORATORS or check.source.function(dotted) or check.value(decorator).of("registrar"):
            continue
        if not dotted.startswith("torch."):  # torch names are judged where they stand
            yield check.forbidden(decorator, "a decorator that is not on the list", "use triton.jit, triton.autotune")


def _is_decorator(check: Check, node: ast.expr, dotted: str) -> bool:
    """Whether a decorator's name is, where it stands, what the file imports under that name."""
    value = check.value(node.func if isinstance(node, ast.Call) else node)
    known = {str(ref.key) for ref in value.refs if ref.kind in ("name", "builtin")}
    others = len(known) < len(value.refs) or not known <= names.DECORATORS or value.tensor
    return not others and (dotted != "triton.jit" or known <= {dotted})


def wrapped(check: Check, node: ast.Name, place: Place) -> Iterator[Remark]:
    """`kernel = triton.jit(f)`: f itself stays a function that Python runs, and nothing judges its body as such."""
    source = check.source
    own = node.id in {kernel.name for kernel in source.kernels if "triton.jit" not in kernel.decorators}
    if own and isinstance(node.ctx, ast.Load) and place.scope.resolve(node.id) is check.inference.module:
        call = place.parent
        if not (isinstance(call, ast.Call) and node in call.args and source.dotted(call.func) == "triton.jit"):
            yield check.forbidden(node, f"{node.id} is more than what triton.jit({node.id}) is given", MUST_BE_DEFS)
