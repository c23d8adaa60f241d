"""Rules about names: what a dotted name, a builtin or an attribute is, whether or not it is called.

A computing name is refused where it is mentioned, so tables, default arguments, partials and aliases hide nothing.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from orchestrator.policy import names
from orchestrator.policy.access import names_itself
from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.evaluate import names_a_type
from orchestrator.policy.values import Value
from orchestrator.records import Status

WRITE_A_KERNEL = "move this work into a @triton.jit kernel; the host only allocates, reads shapes and launches"
IDLE_TORCH = ("torch.manual_seed", "torch.testing", "torch.cuda.manual_seed", "torch.cuda.synchronize")
DEMO_TORCH = ("torch.manual_seed", "torch.cuda.", "torch.testing", "torch.random", "torch.Generator", "torch.set_print")


def name(check: Check, node: ast.Name, place: Place) -> Iterator[Remark]:
    """A bare name: an imported function, a builtin, or something undefined."""
    if not isinstance(node.ctx, ast.Load):
        return
    home = place.scope.resolve(node.id)
    if home is None or (home.is_class and hasattr(builtins, node.id)):  # in a class body it may not be bound yet
        yield from _builtin(check, node, place)
    elif node.id in check.source.paths and home.top:
        yield from path(check, node, check.source.paths[node.id], place)


def _builtin(check: Check, node: ast.Name, place: Place) -> Iterator[Remark]:
    label = node.id
    if label in ("__name__", "__main__"):
        yield from _own_name(check, node, place)
    elif place.kernel and label in names.KERNEL_BUILTINS:
        if label == "print":
            yield check.note(node, "print in a kernel writes to the process's output; it is not evidence of anything")
    elif place.kernel and label in names.BUILTINS:
        yield check.forbidden(node, f"the builtin {label} in a kernel", "compute with triton.language alone")
    elif label in names.BUILTINS or (place.dead and label == "print"):
        return
    elif hasattr(builtins, label) or label.startswith("__"):
        yield check.forbidden(node, f"the builtin {label} is not allowed", _BUILTIN_ADVICE.get(label, _PLAIN_CODE))
    else:
        yield check.source.finding(
            Status.COMPILE_ERROR, node, f"the name {label} is not defined", "define or import it"
        )


_PLAIN_CODE = "a kernel file needs plain code only: no reflection, no generated code, no files, no output"
_BUILTIN_ADVICE = {
    "print": "delete it; output is never read as a result",
    "id": "do not key anything by identity; recompute on every call",
    "hash": "do not key anything by content; recompute on every call",
    "open": "a kernel file reads and writes no files",
}


def _own_name(check: Check, node: ast.Name, place: Place) -> Iterator[Remark]:
    call = place.parent
    if isinstance(call, ast.Call) and check.source.dotted(call.func) == "logging.getLogger":
        return
    if isinstance(call, ast.Compare) and place.demo:
        return
    advice = 'use it only in logging.getLogger(__name__) or in exactly `if __name__ == "__main__":` without else'
    yield check.forbidden(node, "__name__ decides what this code does", advice)


# --- attributes


def attribute(check: Check, node: ast.Attribute, place: Place) -> Iterator[Remark]:
    """`owner.name`, read; assignments to attributes are in `structure`."""
    if not isinstance(node.ctx, ast.Load):
        return
    if any(_names_a_type(check, part, place) for part in (node, place.parent)):
        return
    if place.kernel or place.demo:
        yield from _by_syntax(check, node, place)
        return
    yield from read(check, node, check.value(node.value), node.attr, place)


_TYPED = frozenset({"inst", "class", "def", "box", "ctx", "record"})


def _names_a_type(check: Check, node: ast.AST, place: Place) -> bool:
    """The name of a type in a message; that of a kernel's, or of a function of Triton's, tells the interpreter."""
    if place.kernel or not isinstance(node, ast.Attribute) or not names_a_type(node, place.scope):
        return False
    inner = node.value.value if isinstance(node.value, ast.Attribute) else node.value
    return {ref.kind for ref in check.value(inner).refs} <= _TYPED


def read(check: Check, node: ast.AST, owner: Value, label: str, place: Place) -> Iterator[Remark]:
    """Reading attribute `label` of a value, by syntax or by getattr."""
    if names_itself(owner, label):
        return
    paths = owner.of("name")
    for ref in paths:
        yield from path(check, node, f"{ref.key}.{label}", place)
    if paths and not owner.tensor:
        return
    if _fact_of_a_kernel(check, node, owner, label, place.parent):
        if label == "warmup":
            yield check.note(node, "warmup compiles a kernel without launching it: grey, allowed")
        return
    if _hidden(label, owner):
        yield check.forbidden(node, f"the attribute {label} is not for kernel files", "use the public interface")
    elif owner.of("kernel") or owner.of("launcher"):
        yield check.forbidden(node, f"the attribute {label} of a kernel", "launch kernels only as kernel[grid](...)")
    elif any(owner.of(kind) for kind in ("warmup", "compiled", "metadata", "_init_handles")):
        yield check.forbidden(node, f"the attribute {label} of a compiled kernel", "read its registers and sizes")
    elif owner.of("partial"):
        yield check.forbidden(node, f"the attribute {label} of a partial", "call it; keep what it holds in names")
    elif owner.tensor:
        yield from _of_tensor(check, node, label)
    elif not _plain(check, owner, label):
        yield from _of_unknown(check, node, label)


_LOGS = frozenset({"debug", "info", "warning", "error"})


def _fact_of_a_kernel(check: Check, node: ast.AST, owner: Value, label: str, parent: ast.AST) -> bool:
    """What may be read of a kernel, and only there: a warmup's call, its registers, the configuration in a log."""
    kinds = {ref.kind for ref in owner.refs}
    called = isinstance(parent, ast.Call) and parent.func is node
    if kinds == {"kernel"} and label == "best_config":
        return isinstance(node, ast.Attribute) and isinstance(parent, ast.Call) and _logs(check, parent.func)
    if kinds == {"kernel"}:
        return label == "warmup" and called
    if kinds == {"compiled"}:
        return label in names.COMPILED and (called or label != "_init_handles")
    return kinds == {"metadata"} and label in names.COMPILED_METADATA


def _logs(check: Check, function: ast.expr) -> bool:
    plain = {ref.kind for ref in check.value(function).refs} == {"method"}
    return plain and isinstance(function, ast.Attribute) and function.attr in _LOGS


def _hidden(label: str, owner: Value) -> bool:
    if label in names.FRAME_ATTRIBUTES:
        return True
    if label.startswith("__"):
        return not (label == "__init__" and bool(owner.of("super")))
    own = owner.of("inst") or owner.of("ctx") or owner.of("class")
    if owner.of("record") and label in names.RECORD_METHODS:
        return False
    return label.startswith("_") and not own


def _of_tensor(check: Check, node: ast.AST, label: str) -> Iterator[Remark]:
    if label in names.UNVARIED:
        yield check.note(node, f".{label} is the same in every case: what is done where it is another was not seen")
    if label in names.TENSOR_FACTS | names.TENSOR_VIEW_ATTRIBUTES | names.TENSOR_METHODS:
        return
    if label in names.GREY_METHODS:
        yield _grey_method(check, node, label)
    elif f".{label}" in check.allow:
        yield check.note(node, f".{label} computes in torch on the host; this op allows it")
    else:
        yield check.fallback(node, f".{label} of a tensor is not on the list of host operations", WRITE_A_KERNEL)


def _grey_method(check: Check, node: ast.AST, label: str) -> Remark:
    advice = "load the value in the kernel, and cast there with .to(tl.float32)"
    return check.grey(node, f".{label}", names.GREY_METHODS[label], Status.FALLBACK, advice)


_HAVING_FIELDS = ("inst", "class", "record", "ctx", "super")


def _plain(check: Check, owner: Value, label: str) -> bool:
    known = names.PLAIN_ATTRIBUTES | names.TENSOR_FACTS | names.TENSOR_VIEW_ATTRIBUTES | names.TENSOR_METHODS
    if label in known or (label in check.attributes and any(owner.of(kind) for kind in _HAVING_FIELDS)):
        return True
    if label in names.RECORD_METHODS and (owner.of("record") or owner.of("inst")):
        return True
    if owner.of("def") and label in names.REGISTERING:
        return True
    if any(names.AUTOGRAD & set(check.inference.classes[str(ref.key)].bases) for ref in owner.of("class")):
        return label == "apply"
    if owner.of("ctx"):
        return label in names.CTX_METHODS or label in ("saved_tensors", "needs_input_grad")
    return bool(owner.of("inst")) and label in names.NN_MODULE_ATTRIBUTES or bool(owner.of("super"))


def _of_unknown(check: Check, node: ast.AST, label: str) -> Iterator[Remark]:
    if label in names.GREY_METHODS:
        yield _grey_method(check, node, label)
    elif f".{label}" in check.allow:
        yield check.note(node, f".{label} may compute on the host; this op allows it")
    else:
        yield check.fallback(node, f".{label} is not on the list of host operations", WRITE_A_KERNEL)


def _by_syntax(check: Check, node: ast.Attribute, place: Place) -> Iterator[Remark]:
    """Where nothing is inferred: kernel bodies and demo blocks."""
    dotted = check.source.dotted(node)
    root = node
    while isinstance(root.value, ast.Attribute):
        root = root.value
    if isinstance(root.value, ast.Name) and root.value.id in check.source.paths and dotted.split(".")[0] in _ROOTS:
        yield from path(check, node, dotted, place)
    elif node.attr.startswith("_") or node.attr in names.FRAME_ATTRIBUTES:
        yield check.forbidden(node, f"the attribute {node.attr} is not for kernel files", "use the public interface")


# --- dotted names

_ROOTS = frozenset(module.split(".")[0] for module in names.MODULES)


def path(check: Check, node: ast.AST, dotted: str, place: Place) -> Iterator[Remark]:
    """A dotted name, resolved through the imports; of a chain of attributes only the whole is judged."""
    if isinstance(place.parent, ast.Attribute) and place.parent.value is node:
        return
    root = dotted.split(".")[0]
    if dotted in names.CACHING and not isinstance(node, ast.ImportFrom) and not _decorates(check, node, place):
        yield check.forbidden(node, f"{dotted} called, or kept", f"write @{dotted} above the function that it keeps")
    if dotted in names.MODULES:
        yield from _module(check, node, dotted, place)
    elif root == "torch":
        yield from _torch(check, node, dotted, place)
    elif root == "triton":
        yield from _triton(check, node, dotted, place)
    elif not _stdlib(dotted) and root in _ROOTS:
        yield check.forbidden(
            node, f"{dotted} is not on the list of allowed names", "leave it out; compute in a kernel"
        )


def _decorates(check: Check, node: ast.AST, place: Place) -> bool:
    """`@functools.cache`, `@functools.lru_cache(maxsize=None)`: what it keeps is then known by the function."""
    decorators = [one for function in check.source.functions for one in function.node.decorator_list]
    called = isinstance(place.parent, ast.Call) and place.parent.func is node and place.parent in decorators
    return called or node in decorators


def _module(check: Check, node: ast.AST, dotted: str, place: Place) -> Iterator[Remark]:
    """A module may be the left part of a dotted name, not a value: as a value it could be asked for anything."""
    parent = place.parent
    call = isinstance(parent, ast.Call) and check.value(parent.func).of("builtin")
    if isinstance(parent, ast.Call) and call and call[0].key in ("hasattr", "getattr") and parent.args[0] is node:
        return
    yield check.forbidden(node, f"the module {dotted} used as a value", "write the dotted name out where it is used")


def _torch(check: Check, node: ast.AST, dotted: str, place: Place) -> Iterator[Remark]:
    if place.kernel:
        yield check.fallback(node, f"{dotted} in a kernel", "kernels use triton.language only")
    elif dotted == "torch.arange" or dotted == "torch.cuda.set_device":
        yield check.note(node, f"{dotted} on the host: grey, allowed")
    elif (
        dotted in names.TORCH
        or dotted in check.inference.operators
        or _member(dotted)
        or dotted.removesuffix(".default") in check.inference.operators
        or _own_namespace(check, dotted)
    ):
        return
    elif dotted in check.allow:
        yield check.note(node, f"{dotted} computes in torch on the host; this op allows it")
    elif dotted.startswith(names.TORCH_FORBIDDEN):
        if not (dotted.startswith(DEMO_TORCH if place.demo else IDLE_TORCH) and place.dead):
            yield check.forbidden(
                node, f"{dotted} reaches state outside the kernel", "leave it out; only launch kernels"
            )
    else:
        yield check.fallback(node, f"{dotted} is not on the list of host operations", WRITE_A_KERNEL)


def _own_namespace(check: Check, dotted: str) -> bool:
    """`torch.ops.ns`, where the file registers an operator in ns."""
    return any(known.startswith(dotted + ".") for known in check.inference.operators)


def _member(dotted: str) -> bool:
    """A harmless attribute of a plain value: torch.float32.itemsize, torch.__version__.split."""
    owner, _, label = dotted.rpartition(".")
    plain = owner in names.DTYPES or owner in ("torch.__version__", "torch.version.cuda", "torch.version.hip")
    return plain and label in names.PLAIN_ATTRIBUTES | names.TENSOR_FACTS


def _triton(check: Check, node: ast.AST, dotted: str, place: Place) -> Iterator[Remark]:
    if dotted.startswith(names.LANGUAGE + "."):
        yield from _language(check, node, dotted, place)
    elif dotted == "triton.set_allocator":
        yield check.note(node, "triton.set_allocator on the host: grey, allowed")
    elif (
        dotted in names.TRITON
        or dotted in names.KERNEL_TYPES
        and (place.at_import if isinstance(node, ast.ImportFrom) else _only_annotates(place))
        or dotted == "triton.__version__"
        or dotted.startswith("triton.__version__.")
        and dotted.rpartition(".")[2] in names.PLAIN_ATTRIBUTES
    ):
        return
    elif not (place.dead and dotted.startswith(names.DEMO_PREFIXES)):
        yield check.forbidden(node, f"{dotted} is not on the list of allowed names", "use triton.language and launches")


def _only_annotates(place: Place) -> bool:
    """Whether a name stands in an annotation, and nothing is called there."""
    return place.annotation and not isinstance(place.parent, ast.Call | ast.Attribute)


def _language(check: Check, node: ast.AST, dotted: str, place: Place) -> Iterator[Remark]:
    rest = dotted.removeprefix(names.LANGUAGE + ".")
    first = rest.split(".")[0]
    if not _public(dotted):
        yield check.forbidden(node, f"{dotted} reaches below triton.language", "use its public functions")
    elif first == "pointer_type":
        advice = "pass the tensor itself to the kernel"
        what = "can turn an integer into a pointer"
        yield check.grey(node, "tl.pointer_type", what, Status.FORBIDDEN, advice)
    elif first == "inline_asm_elementwise":
        yield check.note(node, "inline assembly in a kernel: grey, allowed; it does not run in Triton's interpreter")
    elif first == "device_print":
        yield check.note(node, "device_print writes to the process's output: grey, allowed; it is not evidence")
    elif first == "static_print":
        yield check.note(node, "static_print writes to the process's output: grey, allowed; it is not evidence")


def _public(dotted: str) -> bool:
    """Whether a name below triton.language is a public function or type, not a module that reaches further."""
    owner, _, label = dotted.rpartition(".")
    if label.startswith("_") or label in names.FRAME_ATTRIBUTES:
        return False
    if owner == "triton.language.core":
        return label in names.CORE
    if owner == names.LANGUAGE or owner in names.LIBDEVICE:
        return label not in names.LANGUAGE_FORBIDDEN
    if owner == names.NAN_MODES:
        return label in ("ALL", "NONE")
    return owner not in names.MODULES and _public(owner) and label in names.PLAIN_ATTRIBUTES


def _stdlib(dotted: str) -> bool:
    if dotted in names.STDLIB_PATHS:
        return True
    owner, _, label = dotted.rpartition(".")
    # A constant's or a class's own attribute: logging.INFO, OrderedDict.fromkeys, itertools.chain.from_iterable.
    return owner in names.STDLIB_PATHS and label in names.PLAIN_ATTRIBUTES
