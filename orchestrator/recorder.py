"""The record of a run: what git keeps, what the run folder keeps, and what a watcher is told.

One place that records, so that the loop holds none of it. After every step the record on disk is complete and
readable, also when the next step never comes.

A run that was killed is taken up by running its steps again: what the run folder and the branch hold of a step is taken
as it is, and from the first step that they do not hold on, all is new.
"""

from __future__ import annotations

import secrets
import time
from asyncio import CancelledError
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import config, costs, decision, kept, prompts, repro, rounds, tried, weigh
from orchestrator.agents.render import render
from orchestrator.attempt import REPORT, Judged
from orchestrator.audit import engine as audit
from orchestrator.errors import OrchestratorError, UsageError, WorkspaceError
from orchestrator.measured import Measured, Swept
from orchestrator.measuring import MEASURED, Rivals
from orchestrator.ops import Op
from orchestrator.records import (
    Attempt,
    AuditFinding,
    Judging,
    Prompt,
    Reply,
    Report,
    Run,
    Severity,
    Status,
    Verdict,
    from_json,
    to_json,
)
from orchestrator.text import printable
from orchestrator.tree import remove_tree, write_whole
from orchestrator.watch import Watch
from orchestrator.workspace import DECISION, RunBranch, Workspace

RUN, SETTINGS, ENVIRONMENT, MEASUREMENTS = "run.json", "config.yaml", "environment.json", "measurements"
_WORDS = 400  # characters of why there was no reply


class Recorder:
    """Records one run. Made by `open`, which commits the baseline before anything is asked of a model."""

    def __init__(self, folder: Path, branch: RunBranch, run: Run, op: Op, judging: Judging, watch: Watch) -> None:
        self.folder = folder
        self.branch = branch
        self.run = run
        self._op = op
        self._judging = judging
        self._watch = watch
        self._measured: Measured | None = None
        self._rivals: Rivals | None = None
        self._swept: Swept | None = None
        self._gpu_s = run.cost.gpu_s
        self._begun = time.monotonic()
        self._past: deque[tuple[str, str]] = deque()  # commits of a killed run that are still to be met again
        self._commit = branch.baseline  # the newest of this run's that is ours now
        self._folders: Counter[str] = Counter()  # handed out, by kind

    @classmethod
    def open(
        cls,
        op: Op,
        agent: str,
        settings: config.Settings,
        workspaces: Path,
        judging: Judging,
        watch: Watch,
        run_id: str | None = None,
    ) -> Recorder:
        """Commit the baseline, make the run's branch and folder, or take up those of a run that was begun."""
        run_id = run_id or new_id(op.name)
        branch = _branch(Workspace.open(workspaces, op.name), run_id, op)
        folder = workspaces / "runs" / run_id
        run = Run(run_id, op.name, branch.name, branch.baseline, _started(folder), agent)
        recorder = cls(folder, branch, run, op, judging, watch)
        recorder._past.extend(branch.history())
        with _disk_errors():
            folder.mkdir(parents=True, exist_ok=True)
        if not (folder / SETTINGS).is_file():  # of a run that goes on, those that it was begun with
            recorder._write(SETTINGS, config.dump(settings))
        recorder._write(ENVIRONMENT, to_json(judging))
        recorder._save()
        watch.run_started(run, recorder.folder, judging)
        return recorder

    @classmethod
    def reopen(cls, folder: Path, branch: RunBranch, run: Run, op: Op, judging: Judging, watch: Watch) -> Recorder:
        """Take up a run that has ended; what ended it is history."""
        recorder = cls(folder, branch, replace(run, error="", verdict=None), op, judging, watch)
        recorder._commit = branch.workspace.tip(branch.name)
        recorder._folders.update({path.name: len(list(path.iterdir())) for path in folder.iterdir() if path.is_dir()})
        recorder._write(ENVIRONMENT, to_json(judging))
        watch.run_started(run, folder, judging)
        return recorder

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Whatever ends the run is in its record: the one boundary at which that is classified."""
        try:
            yield
        except OrchestratorError as error:
            self._ended_by(str(error))
            raise
        except (CancelledError, KeyboardInterrupt):
            self._ended_by("interrupted")
            raise
        except BaseException as error:  # a bug of ours: recorded, never swallowed
            self._ended_by(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
            raise

    def _ended_by(self, error: str) -> None:
        """Only here is the record written after its last step: the ledger must not know less of a run that is over."""
        self.run = replace(self.run, error=error)
        self._save()

    def asked(self, prompt: Prompt, stage: str, round_: int, sample: int = 1) -> Path:
        """Keep the prompt of the next attempt, before it is sent, or of one after it; returns the attempt's folder."""
        number = len(self.run.attempts) + sample
        folder = kept.folder(self.folder, number, stage, round_)
        with _disk_errors():
            folder.mkdir(parents=True, exist_ok=True)
        if not kept.has_reply(folder):
            write_whole(folder / kept.PROMPT, render(prompt))
        if not (folder / REPORT).is_file():
            remove_tree(folder / "job")  # of a verdict that was cut short
        self._watch.asking(number, stage, round_)
        return folder

    def begins_with(self, round_: int) -> dict[str, bytes]:
        """The tree as an attempt begins: the baseline, and the kernel that it is to repair or to improve, if any."""
        files = dict(self.branch.files)
        best = self.run.attempts[self.run.best - 1] if self.run.best is not None and round_ <= 1 else None
        if (begun := best or rounds.furthest(self.run)) is None:
            return files
        kernel = self.branch.workspace.read_at(self._op.spec.kernel_name, str(begun.commit))
        return files if kernel is None else files | {self._op.spec.kernel_name: kernel}

    def answered(self, reply: Reply, folder: Path) -> None:
        """Keep the raw reply, before anything is made of it."""
        if not kept.has_reply(folder):
            kept.keep(reply, folder)
        self._watch.answered(kept.number(folder), reply)

    def wordless(self, reply: Reply, folder: Path) -> None:
        """Keep what a call cost that brought no word; whoever counts costs is told of it as of an answer."""
        kept.keep_wordless(reply, folder)
        self._watch.answered(kept.number(folder), reply)

    def unanswered(self, error: OrchestratorError, folder: Path) -> None:
        """Keep why that attempt of a round has no reply, where others have one: it comes to a failure of ours."""
        self._keep_report(
            Judged(Report(Status.INFRASTRUCTURE, printable(f"unanswered: {error}", _WORDS)), None), folder
        )

    def is_unanswered(self, folder: Path) -> bool:
        """Whether `unanswered` said so of that attempt."""
        return (folder / REPORT).is_file() and not kept.has_reply(folder)

    def judging(self) -> None:
        """The next attempt is being judged. Told, not kept."""
        self._watch.judging(len(self.run.attempts) + 1)

    def judged(self, stage: str, round_: int, reply: Reply, judged: Judged, folder: Path) -> Attempt:
        """Keep the verdict: the report, a commit on the run's branch, the run's record."""
        report = judged.report
        number = len(self.run.attempts) + 1
        digest, agent = kept.prompt_sha256(folder), reply.agent or self.run.agent
        self._keep_report(judged, folder)
        trailers = {
            "Status": report.status,
            "Round": str(round_),
            "Stage": stage,
            "Agent": agent,
            "Model": reply.model,
            "Prompt-Sha256": digest,
            **({"Audit": ", ".join(f"{one.rule} in line {one.line}" for one in report.grave)} if report.grave else {}),
        }
        subject = f"attempt {number} ({stage}, round {round_}): {report.status}"
        name = self._op.spec.kernel_name
        commit = self._committed(subject, lambda: self.branch.commit_attempt(name, judged.kernel, subject, trailers))
        attempt = Attempt(number, stage, round_, agent, reply.model, digest, report, reply.usage, commit)
        best = number if report.accepted and self.run.best is None else self.run.best  # a later one must be measured
        self.run = replace(self.run, attempts=(*self.run.attempts, attempt), best=best)
        self._held_gpu(report.seconds.get("total", 0.0))
        self._save()
        remove_tree(folder / kept.TREE)  # its kernel is committed, what else was in it is in the report
        self._watch.judged(attempt)
        return attempt

    def new_folder(self, kind: str) -> Path:
        """The next folder of its kind in the run's folder, made."""
        self._folders[kind] += 1
        folder = self.folder / kind / f"{self._folders[kind]:02}"
        with _disk_errors():
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def rejudged(self, report: Report) -> None:
        """The best kernel has a new verdict; one that fails now is the best no more."""
        assert self.run.best is not None
        self._judge_anew(self.run.best, report)
        self._held_gpu(report.seconds.get("total", 0.0))
        self._save()

    def recall(self, measured: Measured | None) -> None:
        """What was measured of the best kernel earlier."""
        self._measured = measured

    def remark(self, text: str) -> None:
        """A sentence for the record."""
        self.run = replace(self.run, remarks=(*self.run.remarks, text))

    def measures(self, challenger: int) -> tuple[Path, Rivals]:
        """The folder of that attempt's measurement, and what it is measured against, which is kept there before."""
        folder = self.new_folder(MEASUREMENTS)
        if (folder / MEASURED).is_file():
            return folder, self.rivals(challenger, kept.against(folder).main)
        remove_tree(folder / "job")  # of a measurement that was cut short
        rivals = self.rivals(challenger)
        kept.keep_against(kept.Against(challenger, rivals.main), folder)
        return folder, rivals

    def rivals(self, challenger: int, main: str = "") -> Rivals:
        """What that attempt is measured against: the op's champion now, or at that commit, and the run's best if it is
        another.
        """
        space = self.branch.workspace
        main = main or space.tip("main")
        best = None if self.run.best in (None, challenger) else self.best_kernel()
        return Rivals(space.read_at(self._op.spec.kernel_name, main), main, best)

    def measuring(self, text: str) -> None:
        """How far a measurement is. Told, not kept."""
        self._watch.measuring(text)

    def measured(
        self, challenger: int, measured: Measured, rivals: Rivals, rungs_left: int, margin_floor: float
    ) -> str:
        """Keep what measuring that attempt came to; returns why it is no measurement, "" where it is one.

        It is the best from then on if it is the first or beats the best beyond the noise; else it is discarded. A
        kernel that was convicted while it was timed has not passed.
        """
        self._watch.measured(self._folders[MEASUREMENTS], challenger, measured)
        self._held_gpu(measured.seconds)
        reason = weigh.fault(measured)
        if measured.status is not Status.PASSED:
            self._convict(challenger, measured)
        elif reason:
            self.remark(f"Attempt {challenger} could not be measured: {reason}")
        elif challenger == self.run.best or weigh.beats_the_best(measured, margin_floor):
            self._lead(challenger, measured, rivals, rungs_left)
        else:
            said = (
                f"Attempt {challenger} is correct, not faster than attempt {self.run.best} beyond the noise: discarded"
            )
            self.remark("; ".join(filter(None, [said, weigh.over_the_best(measured)])))
        self.fewer_rungs(rungs_left)
        return reason

    def narrowed(self, least: float, most: float) -> bool:
        """Put shapes whose speedup is below `least` outside the best kernel's envelope; whether they are few enough."""
        assert self._measured is not None and self.run.measurement is not None
        found = weigh.within(self._measured, least, most, rungs_left=self.run.measurement.rungs_left)
        if found is not None:
            self.run = replace(self.run, measurement=found)
            self._save()
        return found is not None

    def fewer_rungs(self, left: int) -> None:
        """So many stages are left to try."""
        if self.run.measurement is not None:
            self.run = replace(self.run, measurement=replace(self.run.measurement, rungs_left=left))
        self._save()

    def swept(self, swept: Swept) -> None:
        """What other launch parameters would do to the best kernel."""
        self._swept = swept
        self._held_gpu(swept.seconds)
        self._save()

    def so_far(self) -> tuple[bytes, Measured, tuple[AuditFinding, ...], Swept | None]:
        """The best kernel, what was measured of it, what the audit notes, and the last sweep of launch parameters."""
        assert self._measured is not None and self.run.best is not None
        noted = self.run.attempts[self.run.best - 1].report.audit
        return self.best_kernel(), self._measured, noted, self._swept

    def objection(self) -> str:
        """What the audit now establishes against the best kernel, or against the last that passed where there is no
        best one; "" where that is nothing.
        """
        passed = [attempt.number for attempt in self.run.attempts if attempt.report.passed]
        if not (number := self.run.best or next(reversed(passed), None)):
            return ""
        triton = self.run.attempts[number - 1].report.versions.get("triton", "")
        found = audit.established(self.kernel_of(number), self._op.spec.kernel_name, triton)
        grave = [f"{one.rule} in line {one.line}" for one in found if one.severity is Severity.HIGH]
        return f"of attempt {number} the audit establishes {', '.join(grave)}" if grave else ""

    def _lead(self, number: int, measured: Measured, rivals: Rivals, rungs_left: int) -> None:
        self._measured, self._rivals = measured, rivals
        self.run = replace(self.run, best=number, measurement=weigh.weigh(measured, rungs_left=rungs_left))

    def _convict(self, number: int, measured: Measured) -> None:
        if number == self.run.best:
            self._measured = measured  # what there is of it
        passed = self.run.attempts[number - 1].report
        message = f"while it was timed: {measured.message}"
        self._judge_anew(number, replace(passed, status=measured.status, message=message, detail=measured.detail))

    def _judge_anew(self, number: int, report: Report) -> None:
        """That attempt has another verdict; what was measured of it no longer counts."""
        old, best = self.run.attempts[number - 1], self.run.best
        new = replace(old, report=report)
        attempts = tuple(new if attempt is old else attempt for attempt in self.run.attempts)
        if number == best:
            self.run = replace(self.run, best=None, measurement=None)
        self.run = replace(self.run, attempts=attempts, best=best if number != best or report.accepted else None)
        self._watch.judged(new)

    def merged(self) -> None:
        """The kernel becomes the champion, unless another has become it since this one was measured."""
        assert self.run.verdict is not None
        message = f"merge {self.branch.name}: {self.run.verdict.reason}"
        main = None if self._rivals is None else self._rivals.main
        self._watch.merged(self.run, self.branch.merge_commit() or self.branch.merge(message, main))

    def concluded(self, verdict: Verdict) -> None:
        """Keep the decision: DECISION.md on the branch, beside the best kernel, and in the run's folder."""
        self.run = replace(self.run, verdict=verdict, seconds=round(time.monotonic() - self._begun, 2))
        self._put_best_back()
        subject = f"decision: {verdict.decision}"
        self._committed(subject, lambda: self.branch.commit_file(DECISION, self._decision().encode(), subject))
        self._write(DECISION, (self.branch.workspace.read_at(DECISION, self._commit) or b"").decode())
        self._save()
        self._watch.decided(self.run, self.folder)

    def tried(self) -> tuple[str, ...]:
        """What was tried on this op, in this run and before it, a line each."""
        return tried.lines(self.run, self.branch, self.folder.parent)

    def best_kernel(self) -> bytes:
        """The bytes of the best passed kernel."""
        assert self.run.best is not None
        return self.kernel_of(self.run.best)

    def kernel_of(self, number: int) -> bytes:
        """The bytes of that attempt's kernel."""
        commit = self.run.attempts[number - 1].commit
        kernel = self.branch.workspace.read_at(self._op.spec.kernel_name, str(commit))
        if kernel is None:
            raise WorkspaceError(f"commit {commit} of {self.run.id} holds no {self._op.spec.kernel_name}")
        return kernel

    def _held_gpu(self, seconds: float) -> None:
        """The run's cost, with the seconds for which the judge now held a GPU."""
        self._gpu_s += 0.0 if self._judging.interpreted else seconds
        self.run = replace(self.run, cost=costs.of_attempts(self.run.attempts, self._gpu_s))

    def _put_best_back(self) -> None:
        """A branch ends with its best kernel, also when a later attempt was worse: a merge takes what stands there."""
        name = self._op.spec.kernel_name
        if self.run.best is None or self.branch.workspace.read_at(name, self._commit) == self.best_kernel():
            return
        subject = f"the best kernel again: attempt {self.run.best}"
        self._committed(subject, lambda: self.branch.commit_file(name, self.best_kernel(), subject))

    def _committed(self, subject: str, commit: Callable[[], str]) -> str:
        """The commit of a step: the one that a killed run has made of it, else a new one."""
        if not self._past:
            self._commit = commit()
            return self._commit
        self._commit, made = self._past.popleft()
        if made != subject:
            raise WorkspaceError(f"{self.branch.name} holds {made!r} where now is {subject!r}: start a new run")
        return self._commit

    def _keep_report(self, judged: Judged, folder: Path) -> None:
        """What a person reads of a verdict, then the verdict itself: where it is, the rest is too."""
        if (folder / REPORT).is_file():
            return
        write_whole(folder / "report.md", prompts.render_report(judged.report))
        if judged.kernel is not None and (script := repro.script(self._op, judged.kernel, judged.report)):
            write_whole(folder / "repro.py", script)
        write_whole(folder / REPORT, to_json(judged.report))

    def _decision(self) -> str:
        best = None if self.run.best is None else self.run.attempts[self.run.best - 1]
        return decision.render(self.run, self._op, self._judging, best, self._measured, self._swept)

    def _save(self) -> None:
        if self._past:
            return  # the record on disk knows more than we do yet
        self.run = replace(self.run, seconds=round(time.monotonic() - self._begun, 2))
        self._write(RUN, to_json(self.run))
        self._watch.recorded(self.run)

    def _write(self, name: str, text: str) -> None:
        write_whole(self.folder / name, text)


def new_id(name: str) -> str:
    """The id of what begins now: an op's run, a batch. Ids of one name are in the order in which they were made.

    The last word is the part of the second that has gone by, and a byte by which two made at once differ.
    """
    now = datetime.now(UTC)
    return f"{name}-{now:%Y%m%d-%H%M%S}-{now.microsecond:05x}{secrets.token_hex(1)}"


def _branch(space: Workspace, run_id: str, op: Op) -> RunBranch:
    """The run's branch, begun where there is none."""
    files = op.workspace_files()
    if not space.tip(f"run/{run_id}"):
        return space.start_run(files, run_id)
    branch = space.open_run(run_id)
    if dict(branch.files) != files:
        raise UsageError(f"the op {op.name} has changed since {run_id} began; start a new run")
    return branch


def _started(folder: Path) -> str:
    """When the run began: now, or as its record says."""
    if (record := folder / RUN).is_file():
        return from_json(Run, record.read_bytes()).started
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"the run's record cannot be written: {error}; free the disk or give --workspaces DIR"
        ) from error
