"""A run, or the judging of files, as a person sees it: what is running, what it ended in, the failing cases.

In a terminal with a spinner and tables, elsewhere as plain lines, one fact a line. Owns no facts.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.status import Status as Spinner
from rich.table import Table

from orchestrator import bottleneck, costs
from orchestrator.measured import Measured
from orchestrator.records import Attempt, CaseResult, Decision, Judging, Reply, Report, Run
from orchestrator.text import printable
from orchestrator.watch import Silent

_SHOWN = 8  # failing cases in the terminal; the report has all
_WIDEST = 2000  # characters of one line
_COLOURS = {Decision.MERGE: "green", Decision.UNMEASURED: "green", Decision.REWORK: "yellow"}


class Terminal(Silent):
    """Prints the steps of a run on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner: Spinner | None = None
        self._round = ("", 0)  # stage and round that was told
        self._asked = 0  # times in it
        self.folder: Path | None = None  # of the run's record, once there is one

    def say(self, text: str, style: str = "") -> None:
        """Text, whatever it holds: that of a model or a candidate is shown, never interpreted."""
        for line in text.splitlines():
            self._console.print(escape(printable(line, _WIDEST)), style=style or None, soft_wrap=True, highlight=False)

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """Where it runs, and where its record is."""
        self._round, self.folder = ("", 0), folder
        self._place(f"run {run.id}: ", judging)
        self.say(f"record in {folder}")

    def asking(self, number: int, stage: str, round_: int) -> None:
        """A prompt goes out, once for each sample; in round 0 nobody is asked."""
        if self._round != (stage, round_):
            self._round, self._asked = (stage, round_), 0
            self.say(f"stage {stage}, round {round_}" if round_ else f"stage {stage}, without a model")
        self._asked += 1
        if round_:
            self._wait("asking for a proposal" if self._asked == 1 else "and for another at the same time")

    def answered(self, number: int, reply: Reply) -> None:
        """Who answered."""
        usage = reply.usage
        tokens = f", {usage.output_tokens} tokens" if usage.output_tokens is not None else ""
        self._rest()
        if reply.agent:
            self.say(f"  a kernel by: {reply.agent}")
        elif usage.requests:
            self.say(f"  {reply.model} answered in {usage.latency_s:.1f} s{tokens}")
        else:
            self.say(f"  replayed a reply of {reply.model}")

    def judging(self, number: int) -> None:
        """Of several, by its number: they are here, or will not come."""
        self._wait("judging" if self._asked == 1 else f"judging attempt {number}")

    def judged(self, attempt: Attempt) -> None:
        """The verdict of one attempt, with its failing cases."""
        self._verdict("  ", attempt.report)

    def measuring(self, text: str) -> None:
        """A line of a measurement; elsewhere than in a terminal the lines themselves are the progress."""
        self._rest()
        self._line("  ", text)
        if self._console.is_terminal:
            self._wait("measuring")

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        """Where the time of a kernel that was timed goes."""
        self._rest()
        for sentence in (*bottleneck.where_time_goes(measured), *bottleneck.compiled_facts(measured)[:_SHOWN]):
            self._line("  - ", sentence)

    def decided(self, run: Run, folder: Path) -> None:
        """The decision."""
        self._rest()
        if run.verdict is None:
            return
        for remark in run.remarks:
            self._line("", remark)
        self.say(f"{run.verdict.decision}: {run.verdict.reason}", f"bold {_COLOURS.get(run.verdict.decision, 'red')}")
        spent = f"{told}; " if (told := costs.told(run.cost)) else ""
        self.say(f"{spent}{run.seconds:.0f} s in all; {folder / 'DECISION.md'}, branch {run.branch}")

    def verifying(self, judging: Judging) -> None:
        """Where files are going to be judged."""
        self._place("", judging)

    def verifying_file(self, file: str) -> None:
        """A file is being judged; elsewhere than in a terminal its verdict is the one line about it."""
        if self._console.is_terminal:
            self._wait(f"judging {printable(file)}")

    def verified(self, file: str, report: Report) -> None:
        """The verdict on one file, with its failing cases."""
        self._verdict(f"{printable(file)}: ", report)

    def close(self) -> None:
        """Stop a spinner that still turns."""
        self._rest()

    def _place(self, what: str, judging: Judging) -> None:
        self.say(f"{what}judged on {judging.device}, triton {judging.versions['triton']}")
        for piece in judging.sandbox:
            if not piece.held:
                self.say(f"confinement without: {piece.name} ({piece.detail})", "yellow")

    def _verdict(self, head: str, report: Report) -> None:
        """What a file or an attempt ended in, and why."""
        self._rest()
        self._line(f"{head}{report.status}: ", report.message, _took(report), "green" if report.passed else "red")
        for sentence in report.diagnosis:
            self._line("  - ", sentence)
        for finding in report.findings[:_SHOWN]:
            if len(report.findings) > 1:  # a single one is the message already
                self._line("  - ", f"{finding.where}: {finding.message}")
            self._line("    instead: ", finding.advice)
        for fault in report.grave:
            self._line("  audit, high: ", f"line {fault.line} ({fault.rule}): {fault.message}", style="red")
            self._line("    instead: ", fault.repair)
        failed = [case for case in report.cases if not case.passed]
        if failed:
            self._failing(failed)
        for note in report.notes:
            self._line("  allowed, but noted: ", note)

    def _line(self, head: str, text: str, tail: str = "", style: str = "") -> None:
        """Text that a candidate may have a hand in, on one line: it cannot begin a line of its own."""
        self.say(f"{head}{printable(text, _WIDEST // 2)}{tail}", style)

    def _failing(self, failed: list[CaseResult]) -> None:
        shown, more = failed[:_SHOWN], len(failed) - _SHOWN
        if self._console.is_terminal:
            table = Table("case", "status", "max_abs", "max_rel", "x tolerance", "wrong", box=None, pad_edge=False)
            for case in shown:
                table.add_row(*map(escape, _row(case)))
            self._console.print(table)
        else:
            for case in shown:
                self.say(f"  [FAIL] {' '.join(_row(case))}")
        if more > 0:
            self.say(f"  and {more} more in the report")

    def _wait(self, text: str) -> None:
        self._rest()
        if self._console.is_terminal:
            self._spinner = self._console.status(escape(text))
            self._spinner.start()
        else:
            self.say(f"  {text}")

    def _rest(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None


def _row(case: CaseResult) -> tuple[str, ...]:
    if case.max_abs is None:
        return (case.name, case.status, "", "", "", "")
    return (
        case.name,
        case.status,
        f"{case.max_abs:.2e}",
        f"{case.max_rel:.2e}",
        f"{case.tolerance_ratio:.3g}",
        f"{case.wrong}/{case.elements}",
    )


def _took(report: Report) -> str:
    return f" ({report.seconds['total']:.1f} s)" if "total" in report.seconds else ""
