"""The record of a run: what git keeps, what the run folder keeps, and what a watcher is told.

One place that records, so that the loop holds none of it. After every step the record on disk is complete and
readable, also when the next step never comes.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import config, decision, prompts, repro, weigh
from orchestrator.agents.render import prompt_sha256, render
from orchestrator.attempt import Judged
from orchestrator.errors import OrchestratorError, WorkspaceError
from orchestrator.measure import Rivals
from orchestrator.measured import Measured
from orchestrator.ops import Op
from orchestrator.records import Attempt, Judging, Prompt, Reply, Report, Run, Status, Verdict, to_json
from orchestrator.watch import Watch
from orchestrator.workspace import RunBranch, Workspace


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
        self._begun = time.monotonic()

    @classmethod
    def open(
        cls, op: Op, agent: str, settings: config.Settings, workspaces: Path, judging: Judging, watch: Watch
    ) -> Recorder:
        """Commit the baseline, make the run's branch and folder."""
        now = datetime.now(UTC)
        run_id = f"{op.name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        branch = Workspace.open(workspaces, op.name).start_run(op.workspace_files(), run_id)
        run = Run(run_id, op.name, branch.name, branch.baseline, now.isoformat(timespec="seconds"), agent)
        recorder = cls(workspaces / "runs" / run_id, branch, run, op, judging, watch)
        with _disk_errors():
            recorder.folder.mkdir(parents=True)
            recorder._write("config.yaml", config.dump(settings))
        recorder._save()
        watch.run_started(run, recorder.folder, judging)
        return recorder

    @classmethod
    def reopen(cls, folder: Path, branch: RunBranch, run: Run, op: Op, judging: Judging, watch: Watch) -> Recorder:
        """Take up a run that has ended; what ended it is history."""
        recorder = cls(folder, branch, replace(run, error="", verdict=None), op, judging, watch)
        watch.run_started(run, folder, judging)
        return recorder

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Whatever ends the run is in its record: the one boundary at which a failure of ours is classified."""
        try:
            yield
        except OrchestratorError as error:
            self.run = replace(self.run, error=str(error))
            raise
        except BaseException as error:  # an interrupt, or a bug of ours: recorded, never swallowed
            self.run = replace(
                self.run, error=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            )
            raise
        finally:
            self._save()

    def asked(self, prompt: Prompt, stage: str, round_: int) -> Path:
        """Keep the prompt of the next attempt, before it is sent; returns the attempt's folder."""
        folder = self.folder / "attempts" / f"{len(self.run.attempts) + 1:02}-{stage}-{round_}"
        with _disk_errors():
            folder.mkdir(parents=True)
            (folder / "prompt.md").write_text(render(prompt), encoding="utf-8")
        self._watch.asking(stage, round_)
        return folder

    def answered(self, reply: Reply, folder: Path) -> None:
        """Keep the raw reply, before anything is made of it."""
        with _disk_errors():
            (folder / "reply.md").write_text(reply.text, encoding="utf-8", errors="surrogatepass")
            (folder / "usage.json").write_text(json.dumps(asdict(reply.usage) | {"model": reply.model}, indent=2))
        self._watch.judging(reply)

    def judged(self, stage: str, round_: int, prompt: Prompt, reply: Reply, judged: Judged, folder: Path) -> Attempt:
        """Keep the verdict: a commit on the run's branch, the report, the run's record."""
        report = judged.report
        number = len(self.run.attempts) + 1
        digest = prompt_sha256(prompt)
        trailers = {
            "Status": report.status,
            "Round": str(round_),
            "Stage": stage,
            "Agent": self.run.agent,
            "Model": reply.model,
            "Prompt-Sha256": digest,
        }
        subject = f"attempt {number} ({stage}, round {round_}): {report.status}"
        commit = self.branch.commit_attempt(self._op.spec.kernel_name, judged.kernel, subject, trailers)
        attempt = Attempt(number, stage, round_, self.run.agent, reply.model, digest, report, reply.usage, commit)
        with _disk_errors():
            (folder / "report.json").write_text(to_json(report), encoding="utf-8")
            (folder / "report.md").write_text(prompts.render_report(report), encoding="utf-8")
            if judged.kernel is not None and (script := repro.script(self._op, judged.kernel, report)):
                (folder / "repro.py").write_text(script, encoding="utf-8", newline="")
        best = number if report.passed and self.run.best is None else self.run.best  # a later one must be measured
        self.run = replace(self.run, attempts=(*self.run.attempts, attempt), best=best)
        self._save()
        self._watch.judged(attempt)
        return attempt

    def new_folder(self, kind: str) -> Path:
        """The next folder of its kind in the run's folder, made."""
        with _disk_errors():
            number = len(list((self.folder / kind).glob("*"))) + 1
            folder = self.folder / kind / f"{number:02}"
            folder.mkdir(parents=True)
        return folder

    def rejudged(self, report: Report) -> None:
        """The best kernel has a new verdict; one that fails now is the best no more."""
        assert self.run.best is not None
        self._judge_anew(self.run.best, report)
        self._save()

    def recall(self, measured: Measured | None) -> None:
        """What was measured of the best kernel earlier."""
        self._measured = measured

    def remark(self, text: str) -> None:
        """A sentence for the record."""
        self.run = replace(self.run, remarks=(*self.run.remarks, text))

    def challenger(self) -> int | None:
        """The attempt that is to be measured: the best if it was not, else the newest if that passed too; or none."""
        run = self.run
        if run.best is None or run.measurement is None:
            return run.best
        newest = run.attempts[-1]
        return newest.number if newest.report.passed and newest.number != run.best else None

    def rivals(self, challenger: int) -> Rivals:
        """What that attempt is measured against: the op's champion now, and the run's best if it is another."""
        space = self.branch.workspace
        main = space.tip("main")
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
        reason = weigh.fault(measured)
        if measured.status is not Status.PASSED:
            self._convict(challenger, measured)
        elif reason:
            self.remark(f"Attempt {challenger} could not be measured: {reason}")
        elif challenger == self.run.best or weigh.beats_the_best(measured, margin_floor):
            self._lead(challenger, measured, rivals, rungs_left)
        else:
            best = self.run.best
            self.remark(f"Attempt {challenger} is correct, not faster than attempt {best} beyond the noise: discarded")
        self.fewer_rungs(rungs_left)
        return reason

    def fewer_rungs(self, left: int) -> None:
        """So many stages are left to try."""
        if self.run.measurement is not None:
            self.run = replace(self.run, measurement=replace(self.run.measurement, rungs_left=left))
        self._save()

    def so_far(self) -> tuple[bytes, Measured]:
        """The best kernel, and what was measured of it."""
        assert self._measured is not None
        return self.best_kernel(), self._measured

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
        self.run = replace(self.run, attempts=attempts, best=best if number != best or report.passed else None)
        self._watch.judged(new)

    def merged(self) -> None:
        """The kernel becomes the champion, unless another has become it since this one was measured."""
        assert self.run.verdict is not None
        message = f"merge {self.branch.name}: {self.run.verdict.reason}"
        self.branch.merge(message, None if self._rivals is None else self._rivals.main)

    def concluded(self, verdict: Verdict) -> None:
        """Keep the decision: DECISION.md on the branch, beside the best kernel, and in the run's folder."""
        self.run = replace(self.run, verdict=verdict, seconds=round(time.monotonic() - self._begun, 2))
        self._put_best_back()
        text = self._decision()
        self.branch.commit_file("DECISION.md", text.encode(), f"decision: {verdict.decision}")
        self._write("DECISION.md", text)
        self._save()
        self._watch.decided(self.run, self.folder)

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

    def _put_best_back(self) -> None:
        """A branch ends with its best kernel, also when a later attempt was worse: a merge takes what stands there."""
        name = self._op.spec.kernel_name
        if self.run.best is not None and self.branch.workspace.read(name, self.branch.name) != self.best_kernel():
            self.branch.commit_file(name, self.best_kernel(), f"the best kernel again: attempt {self.run.best}")

    def _decision(self) -> str:
        best = None if self.run.best is None else self.run.attempts[self.run.best - 1]
        return decision.render(self.run, self._op, self._judging, best, self._measured)

    def _save(self) -> None:
        self.run = replace(self.run, seconds=round(time.monotonic() - self._begun, 2))
        self._write("run.json", to_json(self.run))

    def _write(self, name: str, text: str) -> None:
        """Whole or not at all: a killed process leaves the old file, never half of the new one."""
        with _disk_errors():
            partial = self.folder / f".{name}.partial"
            partial.write_text(text, encoding="utf-8", errors="surrogatepass")
            partial.replace(self.folder / name)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"the run's record cannot be written: {error}; free the disk or give --workspaces DIR"
        ) from error
