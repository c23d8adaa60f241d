"""What a kernel file may say: an allow-list over its syntax tree, refusing by default.

`check` is the whole interface. No findings means accepted. Owns the order of the rules and nothing they say: names and
attributes are judged in `mentions`, host computing and caches in `host` and `callsites`, the shape of the file in
`structure`, classes in `classes`, addresses in kernels in `pointers`, counts of calls in `counts`, functions that
nothing runs in `idle`; the lists are in `names`, and which values may be tensors is inferred in `infer`.

A rule can refuse, not prove: what only numbers can tell (a wrong constant, an ignored eps) is the judge's.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.policy import callsites, classes, counts, host, mentions, pointers, structure
from orchestrator.policy.check import Check, Place, Remark, Rule, walk
from orchestrator.policy.idle import idle, mentioned
from orchestrator.policy.infer import Inference
from orchestrator.policy.names import CONSTEXPR
from orchestrator.policy.values import EMPTY, TENSOR, parameters
from orchestrator.records import Finding, Status
from orchestrator.source import Source, read

MAX_FINDINGS = 40

RULES: dict[type[ast.AST], tuple[Rule, ...]] = {
    ast.Name: (mentions.name, structure.shadowed, structure.wrapped),
    ast.Attribute: (mentions.attribute, structure.stored_attribute, pointers.pointer_type),
    ast.Import: (structure.imported,),
    ast.ImportFrom: (structure.imported,),
    ast.BinOp: (host.binary,),
    ast.UnaryOp: (host.unary,),
    ast.Compare: (host.compare,),
    ast.BoolOp: (host.tested,),
    ast.IfExp: (host.tested,),
    ast.If: (host.tested, structure.demo),
    ast.While: (host.tested,),
    ast.Assert: (host.tested,),
    ast.comprehension: (host.tested,),
    ast.FormattedValue: (host.formatted,),
    ast.Match: (host.matched,),
    ast.Subscript: (host.subscript,),
    ast.Call: (callsites.call,),
    ast.Assign: (host.assign,),
    ast.AnnAssign: (host.assign,),
    ast.NamedExpr: (host.assign,),
    ast.arguments: (host.default,),
    ast.AugAssign: (host.augmented,),
    ast.Return: (host.returned,),
    ast.Try: (structure.tried,),
    ast.With: (structure.within,),
    ast.Delete: (structure.deleted,),
    ast.Global: (structure.refused,),
    ast.Nonlocal: (structure.refused,),
    ast.AsyncFunctionDef: (structure.refused,),
    ast.AsyncFor: (structure.refused,),
    ast.AsyncWith: (structure.refused,),
    ast.Await: (structure.refused,),
    ast.FunctionDef: (structure.function, structure.shadowed, counts.counted),
    ast.ClassDef: (classes.klass,),
    ast.arg: (structure.parameter,),
}


@dataclass(frozen=True)
class PolicyResult:
    """What the policy found. Notes are grey things that were seen and allowed."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the file may go on to the judge."""
        return not self.findings


def check(
    data: bytes,
    *,
    filename: str,
    entry: str,
    allow: frozenset[str] = frozenset(),
    tensors: frozenset[str] | None = None,
) -> PolicyResult:
    """Check the bytes of a kernel file. Never raises for bad input.

    allow: host operations that the op allows, by name: "torch.sum", ".to", ".item", "/".
    tensors: the entry's parameters that are tensors, where the op knows; None infers them.
    """
    source = read(data, filename)
    if isinstance(source, Finding):
        return PolicyResult((source,))
    problem = _entry_problem(source, entry)
    if problem is not None:
        return PolicyResult((problem,))
    inference = Inference(source, entry, tensors)
    inference.run()
    if not inference.settled:
        message = "the flow of values is too deep or too wide to follow"
        return PolicyResult((source.finding(Status.FORBIDDEN, source.tree, message, "write a short, plain host part"),))
    return _collect(_remarks(_context(source, inference, allow)))


def _entry_problem(source: Source, entry: str) -> Finding | None:
    if source.function(entry) is not None:
        return None
    message = f"there is no plain `def {entry}(...)` at the top level"
    return Finding(Status.COMPILE_ERROR, f"{source.filename}:1", "", message, f"define {entry} with def, not indented")


def _context(source: Source, inference: Inference, allow: frozenset[str]) -> Check:
    entry = source.function(inference.entry)
    roots = [source.tree, *inference.handed, *([entry.node] if entry else [])]
    fields = {name for _, name in inference.attributes}
    methods = {f.name for f in source.functions if f.owner is not None and not f.name.startswith("__")}
    named = fields | methods | set(classes.record_fields(source))
    live = frozenset(inference.reachable(*roots))
    still = idle(source, inference.entry)
    return Check(source, inference, allow, live, still, mentioned(source, still), frozenset(named))


def _remarks(context: Check) -> Iterator[Remark]:
    for node, place in walk(context):
        for rule in RULES.get(type(node), ()):
            yield from _in_place(context, rule(context, node, place), place)
        if isinstance(node, ast.stmt):
            yield from structure.statement(context, node, place)
            yield from classes.class_body(context, node, place)
    yield from structure.rebound(context)
    yield from structure.builtin_names(context)
    yield from _launches(context)
    yield from _constants(context)
    yield from _import_work(context)


def _in_place(context: Check, remarks: Iterator[Remark], place: Place) -> Iterator[Remark]:
    """Where nothing runs computing is not held against the file; reaching out is."""
    for remark in remarks:
        if not (place.dead and isinstance(remark, Finding) and remark.status is not Status.FORBIDDEN):
            yield remark
        elif place.idle is not None:
            yield context.note(place.idle, "this function never runs in the judge and is not part of the kernel")


def _launches(context: Check) -> Iterator[Remark]:
    """The entry must reach a launch of a kernel of this file."""
    entry = context.source.function(context.inference.entry)
    if entry is None:
        return
    if not any(context.inference.launches.get(node) for node in context.inference.reachable(entry.node)):
        message = f"no kernel of this file is launched on the path of {entry.name}"
        yield context.fallback(entry.node, message, f"launch a @triton.jit kernel from {entry.name}: kernel[grid](...)")


def _constants(context: Check) -> Iterator[Remark]:
    """A constant of a kernel's is no tensor: Triton's interpreter hands it over whole, to be computed with as it is."""
    heap, launches = context.inference.heap, context.inference.launches.values()
    for kernel, call in {launch for made in launches for launch in made}:
        assert isinstance(kernel, ast.FunctionDef)
        order = parameters(kernel)
        constant = {arg.arg for arg in order if arg.annotation and context.source.dotted(arg.annotation) in CONSTEXPR}
        positional = itertools.takewhile(lambda arg: not isinstance(arg, ast.Starred), call.args)
        given = [(arg.arg, context.value(value)) for arg, value in zip(order, positional, strict=False)]
        given += [(keyword.arg or "", context.value(keyword.value)) for keyword in call.keywords]
        if any(heap.holds(value, TENSOR) for name, value in given if name in constant):
            message = f"a constant of {kernel.name} may be, or hold, a tensor"
            yield context.forbidden(call, message, "leave out its tl.constexpr, and load from it")


def _import_work(context: Check) -> Iterator[Remark]:
    """Nothing reachable from the import launches or makes a tensor."""
    inference = context.inference
    for node in inference.reachable(context.source.tree):
        made = inference.heap.holds(inference.returns.get(node, EMPTY), TENSOR)
        if inference.launches.get(node) or made:
            message = "runs while the file is imported, and works on tensors"
            yield context.forbidden(node, message, "call it from the entry function only")


def _collect(remarks: Iterator[Remark]) -> PolicyResult:
    findings: dict[tuple[str, str], Finding] = {}
    notes: dict[str, None] = {}
    for remark in remarks:
        if isinstance(remark, str):
            notes[remark] = None
        else:
            findings.setdefault((remark.where, remark.message), remark)
    ordered = sorted(findings.values(), key=lambda finding: int(finding.where.rpartition(":")[2]))
    return PolicyResult(tuple(ordered[:MAX_FINDINGS]), tuple(notes))


__all__ = ["PolicyResult", "check"]
