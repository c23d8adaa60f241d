"""An op that was too large for one kernel, split into parts by a model: asked for, checked, put together again.

Owns the rounds of that conversation, and what a split is: functions of tensors, and one that calls them and computes
nothing itself. Composed they must give what the whole gives, on the whole's own cases. What becomes of each part is
`convert`'s, and of its kernel the loop's: nothing here judges.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator import consult, kept, prompts, reply
from orchestrator.agents import Agent, Request
from orchestrator.convert import pure
from orchestrator.convert.examples import PartSeen
from orchestrator.convert.prober import Prober
from orchestrator.convert.renaming import bound, rename
from orchestrator.ops import Op
from orchestrator.probed import Trial
from orchestrator.tree import write_whole

FILE = "split.py"
_PROBLEM = "problem.md"
_MOST = 6  # parts
_VIEWS = {
    *("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "flatten", "contiguous", "t"),
    *("narrow", "select", "unbind", "split", "chunk", "shape", "size", "movedim", "unflatten", "mT", "T"),
}


@dataclass(frozen=True)
class Split:
    """A split that was checked: its text, and what each part was called with, in the order of their calls."""

    text: str
    parts: Mapping[str, PartSeen]


async def proposed(
    op: Op, report: str, agent: Agent, probe: Prober, rounds: int, record: Path, tell: Callable[[str], None]
) -> Split | str:
    """A split that composes to the whole, or why none came within the rounds.

    Of a record that was begun before, what is kept is taken as it is.
    """
    prompt = prompts.split(op, report)
    problem = "nothing was asked"
    for round_ in range(1, rounds + 1):
        folder = record / f"{round_:02}-split"
        tell(f"split, round {round_}: {'kept' if kept.has_reply(folder) else 'asking; the record is'} in {folder}")
        answer = await consult.answered(agent, Request(prompt, "split", round_, folder))
        known = folder / _PROBLEM
        checked = known.read_text(encoding="utf-8") if known.is_file() else await _checked(op, answer.text, probe)
        if isinstance(checked, Split):
            return checked
        problem = checked
        tell(f"split, round {round_}: {problem}")
        write_whole(known, problem)
        prompt = prompts.resplit(prompt, answer, problem)
    return f"{op.name}: no split into parts came of {rounds} rounds, the last because {problem}"


async def _checked(op: Op, said: str, probe: Prober) -> Split | str:
    """The split that a reply holds, or what is wrong with it."""
    text = reply.files(said, FILE, f"{op.name}_composed").get(FILE, b"").decode(errors="replace")
    if problem := _fault(op, text):
        return problem
    problem, parts = await probe.composed(op, text, _trials(op))
    return problem or _without_dtype(parts) or Split(text, parts)


def _trials(op: Op) -> list[Trial]:
    """The op's smaller shapes at each of its scales."""
    bounds = op.spec.sweep.quick
    shapes = [dict(zip(op.spec.dims, shape, strict=True)) for shape in op.spec.sweep.shapes]
    within = [dims for dims in shapes if all(0 < dims[dim] <= bound for dim, bound in bounds.items())]
    return [Trial(dims, scale=scale) for scale in sorted(op.spec.sweep.scales, key=lambda s: s != 1) for dims in within]


def _fault(op: Op, text: str) -> str:
    """What is wrong with the text of a split, before it is run."""
    if not text:
        return f"the reply holds no block named {FILE}"
    if why := pure.fault(text):
        return why
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    whole = functions.pop(f"{op.name}_composed", None)
    if whole is None:
        return f"it defines no {op.name}_composed"
    wanted = [*op.spec.inputs, *op.spec.parameters]
    if [one.arg for one in whole.args.args] != wanted:
        return f"{op.name}_composed takes {[one.arg for one in whole.args.args]}, and the op {wanted}"
    if not 2 <= len(functions) <= _MOST:
        return f"it has {len(functions)} parts; two to {_MOST} are a split"
    return _computes(whole, set(functions))


def _without_dtype(parts: Mapping[str, PartSeen]) -> str:
    """A part whose result the whole returns must take an input of the whole: its dtype is the result's."""
    for name, seen in parts.items():
        tensors = seen.calls[0]["tensors"]
        outer = [key for key, fact in tensors.items() if key not in seen.inner and "float" in fact["dtype"]]
        if not seen.passed_on and not outer:
            return (
                f"{name} returns a result of the whole and takes none of its inputs, so that the result's dtype is "
                f"unknown to it; let it do more, so that it takes one"
            )
    return ""


def _computes(whole: ast.FunctionDef, parts: set[str]) -> str:
    """What the composing function does beside calling parts and taking views: that would be computed on the host."""
    for node in ast.walk(whole):
        if isinstance(node, ast.BinOp | ast.Compare) and not _of_sizes(node):
            return f"line {node.lineno}: {whole.name} computes `{ast.unparse(node)}`; only parts may compute"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _VIEWS:
            return f"line {node.lineno}: {whole.name} calls .{node.func.attr}; beside parts it may only take views"
    called = {n.func.id for n in ast.walk(whole) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    unused = sorted(parts - called)
    return f"{whole.name} does not call {', '.join(unused)}" if unused else ""


def _of_sizes(node: ast.expr) -> bool:
    """Integer arithmetic: over names that are sizes, which a view needs. Tensors are not told apart by syntax, so that
    only names of one or two letters, constants and shapes are taken as sizes.
    """
    return all(
        isinstance(one, ast.Constant | ast.operator | ast.cmpop | ast.expr_context | ast.BinOp | ast.Compare)
        or (isinstance(one, ast.Name) and len(one.id) <= 2 and one.id.isupper())
        for one in ast.walk(node)
    )


def composed(op: Op, split: Split, kernels: Mapping[str, tuple[str, str]]) -> str:
    """One kernel file of the parts' files; `kernels` has for each part its entry's name and its file."""
    imports: dict[str, None] = {}
    pieces: list[str] = []
    taken: set[str] = {f"{op.name}_triton"}
    for part, (_, text) in kernels.items():
        own, body = _renamed(text, part, taken)
        imports |= dict.fromkeys(own)
        pieces.append(body)
    pieces.append(_entry(op, split, {part: entry for part, (entry, _) in kernels.items()}))
    return "\n".join(imports) + "\n\n\n" + "\n\n\n".join(pieces) + "\n"


def _renamed(text: str, part: str, taken: set[str]) -> tuple[list[str], str]:
    """A file's imports and the rest of it, with top-level names that another part has too renamed."""
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    named = bound(tree.body) - bound(imports)
    change = {name: f"{name}_{part}" for name in named & taken}
    taken |= named | set(change.values())
    rename(tree, change)
    rest = [node for node in tree.body if node not in imports and not _is_docstring(node)]
    return [ast.unparse(node) for node in imports], "\n\n\n".join(ast.unparse(node) for node in rest)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _entry(op: Op, split: Split, entries: Mapping[str, str]) -> str:
    """The whole's entry: the composing function, which calls the parts' entries."""
    functions = {node.name: node for node in ast.parse(split.text).body if isinstance(node, ast.FunctionDef)}
    whole = functions[f"{op.name}_composed"]
    for node in ast.walk(whole):
        if isinstance(node, ast.Name) and node.id in entries:
            node.id = entries[node.id]
    body = [node for node in whole.body if not _is_docstring(node)]
    return f"def {op.spec.entry}:\n" + "\n".join(
        "    " + line for node in body for line in ast.unparse(node).split("\n")
    )
