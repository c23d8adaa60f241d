"""Prompts are files; this renders them.

Owns which facts a template gets and how a report reads. Holds no wording of its own: that is in prompts/*.md.j2,
rendered with undefined names refused. A conversation grows at its end only, so that its prefix can be cached by a
provider.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from orchestrator import decision, resources, tried, weigh
from orchestrator.docs import select
from orchestrator.docs.guide import Guide
from orchestrator.measured import COMPILED, PICKED, Measured, Swept
from orchestrator.ops import Op
from orchestrator.records import (
    Attempt,
    AuditFinding,
    CaseResult,
    Judging,
    Part,
    Prompt,
    Reply,
    Report,
    Status,
    Turn,
    WrongElement,
)

_COMPILED_KERNEL = re.compile(
    r"async_compile\.triton\('\w+', '''.*?(?P<kernel>^@triton\.jit.*?)'''", re.DOTALL | re.MULTILINE
)
_QUOTED = 6000  # characters of one text of a candidate: its beginning and its end
STYLE = 24_000  # characters of kernels of the person's project; a file that would pass it is left out
_LAGGING = 6  # shapes named as those where most is to be gained
_NOTED = 8  # findings of the audit on speed
_EXAMPLES = ("layernorm", "cross_entropy")  # ops shown to who is to write another
_DETAILED = 6  # failing cases shown with elements and traceback; all are in the table


class Prompts:
    """The prompts of one run: one op, one place of judging, and what is known of the Triton there.

    `in_tree`: of an agent that works in the tree.
    """

    def __init__(
        self, op: Op, judging: Judging, rounds: int, guide: Guide | None = None, *, in_tree: bool = False
    ) -> None:
        self._guide = guide
        pages = references(op)
        self._patterns = "\n".join(pages)
        known = {"op": op.spec, "judging": judging, "references": pages}
        self._common = {**known, "rounds": rounds, "in_tree": in_tree}
        self._files = {name: data.decode() for name, data in op.workspace_files().items()}
        self._like = fitting(op.like)
        self._system = _render("system.md.j2", in_tree=in_tree).replace("KERNEL_FILE", op.spec.kernel_name)

    def generate(self, tried: Sequence[str] = ()) -> Prompt:
        """The first prompt. `tried` is what was tried on the op before, a line each."""
        wanted = self._files["SPEC.md"] + self._files["ref.py"]
        names = select.for_op(self._guide, wanted, self._patterns) if self._guide else ()
        text = _render("generate.md.j2", **self._common, files=self._files, names=names, tried=tried, like=self._like)
        return Prompt(self._system, (Turn("user", text),))

    def improve(
        self,
        stage: str,
        tried: Sequence[str],
        kernel: bytes,
        measured: Measured,
        noted: Sequence[AuditFinding],
        swept: Swept | None = None,
    ) -> Prompt:
        """The first prompt of a later stage: the best kernel so far, where it falls behind, what the audit notes, and
        what was tried, a line each.
        """
        rows = [row for row in weigh.rows(measured) if not row.launch_bound]
        lagging = sorted(rows, key=lambda row: (row.speedup.middle, row.ceiling_share))[:_LAGGING]
        shape = lagging[0].name if lagging else ""
        text = _render(
            f"{stage}.md.j2",
            **self._common,
            files=self._files,
            tried=tried,
            kernel=kernel.decode(),
            timings=decision.timings(measured),
            sweep=decision.sweep(swept),
            lagging=lagging,
            noted=[one for one in noted if one.part in (Part.PERFORMANCE, Part.MEMORY)][:_NOTED],
            generated=_kernels(measured.generated.get(f"{COMPILED}-{shape.replace(' ', '-')}.py", "")),
            generated_for=shape,
        )
        return Prompt(self._system, (Turn("user", text),))

    def repair(
        self, asked: Prompt, reply: Reply, report: Report, round_: int, others: Sequence[Attempt] = ()
    ) -> Prompt:
        """The conversation so far, the reply, and the whole report on it. `round_` is the one that failed; `others`
        did so too, and are named with what they ended in.
        """
        told = select.for_report(self._guide, report) if self._guide else select.Told()
        facts = {"round": round_, "report": render_report(report), "grave": bool(report.grave), "told": told}
        told_of = [one for one in others if one.status is not Status.INFRASTRUCTURE]  # that is not about a kernel
        facts |= {"others": [f"{one.status}, {tried.wrong(one.report)}" for one in told_of]}
        text = _render("repair.md.j2", **self._common, **facts)
        return Prompt(asked.system, (*asked.turns, Turn("assistant", reply.text), Turn("user", text)))


def _kernels(generated: str) -> str:
    """Of what torch.compile wrote the Triton kernels and which configuration it picked of each: around them is its own
    machinery, with paths of this machine."""
    kernels = [match["kernel"].strip() for match in _COMPILED_KERNEL.finditer(generated)]
    return "\n\n".join(kernels) + "".join(f"\n{line}" for line in generated.splitlines() if line.startswith(PICKED))


def fitting(texts: Mapping[str, str]) -> dict[str, str]:
    """Of kernels of the person's project those that are shown, the shorter ones first: two whole kernels say more of a
    style than one that is cut.
    """
    kept: dict[str, str] = {}
    cap = STYLE
    for name, text in sorted(texts.items(), key=lambda item: len(item[1])):
        if len(text) <= cap:
            kept[name], cap = text, cap - len(text)
    return kept


def references(op: Op) -> list[str]:
    """The pages of patterns that the op asks for."""
    folder = resources.shipped("prompts") / "references"
    return [(folder / f"{tag}.md").read_text("utf-8").strip() for tag in op.spec.tags]


def draft(name: str, sentence: str, template: Mapping[str, bytes]) -> Prompt:
    """What a model is told that is to write an op's files: the template, and two shipped ops."""
    text = _render(
        "draft_op.md.j2",
        name=name,
        sentence=sentence,
        commented={file: data.decode() for file, data in template.items()},
        examples=[_example(example) for example in _EXAMPLES],
    )
    return Prompt("", (Turn("user", text),))


def split(op: Op, report: str) -> Prompt:
    """What a model is told that is to split an op into parts: what it computes, and how the last attempt ended."""
    arguments = ", ".join([*op.spec.inputs, *op.spec.parameters])
    text = _render("split.md.j2", op=op.spec, reference=op.reference, report=report, arguments=arguments)
    return Prompt("", (Turn("user", text),))


def resplit(asked: Prompt, reply: Reply, problem: str) -> Prompt:
    """The conversation so far, the split, and what is wrong with it."""
    text = _render("resplit.md.j2", problem=problem)
    return Prompt(asked.system, (*asked.turns, Turn("assistant", reply.text), Turn("user", text)))


def redraft(asked: Prompt, reply: Reply, problem: str) -> Prompt:
    """The conversation so far, the draft, and what is wrong with it."""
    text = _render("redraft_op.md.j2", problem=problem)
    return Prompt(asked.system, (*asked.turns, Turn("assistant", reply.text), Turn("user", text)))


def _example(name: str) -> dict[str, object]:
    folder = resources.shipped("configs") / "ops" / name
    return {"name": name, "files": {file: (folder / file).read_text("utf-8") for file in ("op.yaml", "reference.py")}}


def review(**facts: object) -> str:
    """What a model is asked of a kernel that exists already."""
    return _render("audit.md.j2", **facts)


def render_report(report: Report) -> str:
    """A report as Markdown, for a model or a person."""
    failed = [case for case in report.cases if not case.passed]
    unrun = report.expected_cases - len(report.cases)
    return _render("report.md.j2", report=report, failed=failed, unrun=unrun, detailed=_telling(failed))


def _telling(failed: list[CaseResult]) -> list[CaseResult]:
    """The smallest failing case of each kind, up to a handful: they are the ones to work through.

    A kind is a status with the dtype where values are wrong, and with what was raised where something was.
    """
    smallest: dict[tuple[str, str], CaseResult] = {}
    for case in sorted(failed, key=lambda case: math.prod(case.dims.values())):
        smallest.setdefault((case.status, case.detail.split("\n", 1)[0] or case.dtype), case)
    return list(smallest.values())[:_DETAILED]


def _render(template: str, **facts: object) -> str:
    folder = resources.shipped("prompts")
    environment = resources.environment(folder, number=_number, quoted=_quoted, quotient=_quotient, fenced=_fenced)
    return environment.get_template(template).render(**facts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _quotient(element: WrongElement) -> str:
    """got / want where it is a finite number: a constant one names a wrong divisor or a missing factor."""
    if not element.want or not math.isfinite(element.got) or not math.isfinite(element.want):
        return ""
    return f", got / want {element.got / element.want:.4g}"


def _quoted(text: str) -> str:
    """Text of a candidate inside a ~~~~~~~~ fence: it cannot close the fence, and carries no control characters."""
    if len(text) > _QUOTED:
        half = _QUOTED // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    return _fenced(text)


def _fenced(text: str) -> str:
    """Text of others, whole, that cannot close its fence."""
    kept = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return kept.replace("~~~~~~~~", "~~~~~~~ ").strip("\n")
