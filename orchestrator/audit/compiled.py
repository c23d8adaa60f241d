"""What the compiled kernels show: findings over the facts that compiling for real targets left, and their table.

Owns the thresholds. Nothing here is of severity high: what a kernel pays for a spill or a narrow access, only a
measurement says. The facts come from a process that imported the file, and so may be what that file likes; they
accuse, and excuse nothing. Several specializations of one kernel that show the same are one finding.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from orchestrator import source as sources
from orchestrator.audit.context import context
from orchestrator.audit.findings import AuditFinding, Part, Rule, Severity, in_order
from orchestrator.audit.rules.base import declared
from orchestrator.records import Compiled
from orchestrator.source import Source
from orchestrator.text import cell, printable

LOW_OCCUPANCY = 0.25
NARROW_BITS = 32
_ROWS = 24  # of the table
_NAMED = 4  # configurations without a fault

SPILLS = declared(
    Rule(
        "compiled-spills",
        Severity.MEDIUM,
        Part.PERFORMANCE,
        "registers spill to memory",
        "What does not fit into registers goes to local memory and back, at each use.",
        "Take a smaller block, more warps, or fewer values that live at once.",
    )
)
STACK = declared(
    Rule(
        "compiled-stack",
        Severity.LOW,
        Part.PERFORMANCE,
        "a thread needs a stack",
        "A stack lies in local memory, which is as far away as global memory.",
        "Look for spills, for libdevice functions with slow paths and for indices that no constant fixes.",
    )
)
NARROW = declared(
    Rule(
        "compiled-narrow-access",
        Severity.MEDIUM,
        Part.MEMORY,
        "global memory is accessed in narrow pieces only",
        "A thread moves up to 128 bits with one instruction; narrower ones take more instructions for the same bytes.",
        "Let offsets along the last axis follow each other from a multiple of 16 bytes; where strides are arguments, "
        "say so with tl.multiple_of and tl.max_contiguous, or pass a stride of 1 as it is.",
    )
)
UNCOALESCED = declared(
    Rule(
        "compiled-uncoalesced",
        Severity.MEDIUM,
        Part.MEMORY,
        "neighbouring lanes access memory that is apart",
        "Each lane's element then costs a transaction of its own, up to 32 times the traffic.",
        "Put the axis with stride 1 last in the block, or copy such an input to a dense one before.",
    )
)
NO_TENSOR_CORES = declared(
    Rule(
        "compiled-no-tensor-cores",
        Severity.MEDIUM,
        Part.PERFORMANCE,
        "tl.dot is compiled without tensor cores",
        "The product is computed on ordinary units, many times slower.",
        "Take float16, bfloat16 or tf32 operands and blocks of at least 16; where full float32 is meant, say so.",
    )
)
OCCUPANCY = declared(
    Rule(
        "compiled-low-occupancy",
        Severity.LOW,
        Part.PERFORMANCE,
        "few warps fit on a multiprocessor",
        "With few warps there is nothing to run while others wait for memory.",
        "Use fewer registers or less shared memory: a smaller block, fewer stages.",
    )
)


def findings(compiled: Sequence[Compiled], data: bytes, name: str) -> tuple[AuditFinding, ...]:
    """What the facts show, on the lines of the file."""
    source = sources.read(data, name)
    if not isinstance(source, Source):
        return ()
    found: dict[tuple[str, int, str], AuditFinding] = {}
    for kernel in sorted({one.kernel for one in compiled}):
        mine = [one for one in compiled if one.kernel == kernel]
        for rule, line, message in _shown(mine, source, _tuned(kernel, source)):
            lines = source.lines
            text = printable(lines[line - 1].strip()) if 0 < line <= len(lines) else ""
            key = (rule.id, line, message)
            found[key] = AuditFinding(
                *(rule.id, rule.severity, rule.part, name, line, 1, text, printable(message, 400)),
                *(rule.why, rule.repair),
            )
    return in_order(list(found.values()))


def _tuned(kernel: str, source: Source) -> frozenset[str]:
    """What autotune configurations of that kernel set; nothing where it has none."""
    tuning = context(source, None).tunings.get(kernel.rsplit(".", 1)[-1])
    return tuning.names if tuning is not None else frozenset()


def _shown(mine: Sequence[Compiled], source: Source, tuned: frozenset[str]) -> Iterator[tuple[Rule, int, str]]:
    """Of one kernel's specializations: rule, line, and in which of them."""
    line = next((one.line for one in mine if one.line), 0)
    dots = _multiplies(source, line)
    tests: tuple[tuple[Rule, Callable[[Compiled], bool], Callable[[Compiled], int]], ...] = (
        (SPILLS, lambda one: bool(one.spilled_bytes), lambda one: one.spilled_bytes or 0),
        (STACK, lambda one: bool(one.stack_bytes) and not one.spilled_bytes, lambda one: one.stack_bytes or 0),
        (OCCUPANCY, lambda one: one.occupancy is not None and one.occupancy < LOW_OCCUPANCY, _percent),
        (NARROW, _narrow, lambda one: max(one.load_bits or {0: 0})),
        (NO_TENSOR_CORES, lambda one: dots and one.tensor_cores is False, lambda one: 0),
    )
    for rule, holds, figure in tests:
        hit = [one for one in mine if holds(one)]
        if hit:
            yield rule, line, _in(rule, hit, mine, figure, tuned)
    for where in sorted({number for one in mine for number in one.uncoalesced or ()}):
        hit = [one for one in mine if where in (one.uncoalesced or ())]
        yield UNCOALESCED, where, _in(UNCOALESCED, hit, mine, lambda one: 0, tuned)


def _percent(one: Compiled) -> int:
    return round(100 * (one.occupancy or 0))


def _narrow(one: Compiled) -> bool:
    """Many loads, none of them wide: a scalar or two per program need not be."""
    loads = one.load_bits or {}
    return sum(loads.values()) >= 4 and max(loads) <= NARROW_BITS and not one.bulk_copies


_UNITS = {SPILLS.id: "bytes a thread", STACK.id: "bytes a thread", OCCUPANCY.id: "%", NARROW.id: "bits at most"}


def _in(
    rule: Rule,
    hit: Sequence[Compiled],
    mine: Sequence[Compiled],
    figure: Callable[[Compiled], int],
    tuned: frozenset[str],
) -> str:
    """In which specializations: the worst of them named, and which autotune configurations are free of it there."""
    worst = (min if rule in (OCCUPANCY, NARROW) else max)(hit, key=figure)
    amount = f"{figure(worst)} {_UNITS[rule.id]}, " if rule.id in _UNITS else ""
    targets = ", ".join(sorted({one.target for one in hit}))
    text = f"{amount}{worst.target}, {_configuration(worst)}; in {len(hit)} of {len(mine)} specializations ({targets})"
    return text + _compared(worst, hit, mine, tuned) if tuned else text


def _compared(worst: Compiled, hit: Sequence[Compiled], mine: Sequence[Compiled], tuned: frozenset[str]) -> str:
    """The configurations that were compiled for the same arguments and target as the worst, with and without it."""
    rivals = [one for one in mine if (one.target, one.types) == (worst.target, worst.types)]
    having = {_setting(one, tuned) for one in hit if one in rivals}
    free = sorted({_setting(one, tuned) for one in rivals} - having)
    if not free:
        return f"; in each of its {len(having)} configurations there"
    return f"; of {len(having) + len(free)} configurations there these are free of it: {' / '.join(free[:_NAMED])}"


def _setting(one: Compiled, tuned: frozenset[str]) -> str:
    chosen = [f"{name}={one.constants[name]}" for name in sorted(tuned) if name in one.constants]
    return printable(", ".join([*chosen, f"num_warps={one.warps}", f"num_stages={one.stages}"]))


def _configuration(one: Compiled) -> str:
    """What was fixed when it was compiled: element types, constants, warps and stages."""
    kinds = dict.fromkeys(kind[1:] for kind in one.types.values() if kind.startswith("*"))
    constants = [f"{name}={value}" for name, value in one.constants.items() if not isinstance(value, float)]
    return printable(", ".join([*kinds, *constants, f"num_warps={one.warps}", f"num_stages={one.stages}"]), 120)


def _multiplies(source: Source, line: int) -> bool:
    """Whether the kernel that begins there, or a helper of the file, says tl.dot."""
    kernels = [one.node for one in source.kernels]
    mine = [node for node in kernels if line in (node.lineno, *(one.lineno for one in node.decorator_list))]
    calls = (node for tree in mine or kernels for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "dot" for call in calls)


def table(compiled: Sequence[Compiled]) -> list[str]:
    """The facts as Markdown, a row a specialization."""
    head = ["kernel", "target", "configuration", "registers", "spilled", "stack", "shared", "load bits", "store bits"]
    head += ["tensor cores", "occupancy"]
    rows = list(dict.fromkeys(_row(one) for one in compiled))
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(f"\n{len(rows) - _ROWS} more rows in the JSON.")
    return lines


def _row(one: Compiled) -> str:
    occupancy = "" if one.occupancy is None else f"{100 * one.occupancy:.0f} %"
    tensor = {None: "", True: "yes", False: "no"}[one.tensor_cores]
    numbers = (one.registers, one.spilled_bytes, one.stack_bytes, one.shared_bytes)
    widths = (_widths(one.load_bits), _widths(one.store_bits))
    cells = [one.kernel, one.target, _configuration(one), *("" if n is None else str(n) for n in numbers), *widths]
    return f"| {' | '.join(cell(text) for text in [*cells, tensor, occupancy])} |"


def _widths(bits: dict[int, int] | None) -> str:
    return ", ".join(f"{count}x{width}" for width, count in (bits or {}).items())
