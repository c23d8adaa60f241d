"""A watcher that logs a run to the MLflow server, or file, that the person has: MLFLOW_TRACKING_URI.

Owns what goes there: a run with its metrics a round, a trace a model call, and the record's files. Logs in a thread of
its own, so that a slow server holds nothing up, and gives up with one line where the server fails: the run folder is
the record, this a copy. Imports mlflow in use alone; it is an extra.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import kept, weigh
from orchestrator.config import MlflowSettings
from orchestrator.errors import UsageError
from orchestrator.measured import Measured
from orchestrator.records import Attempt, Judging, Reply, Run
from orchestrator.text import printable
from orchestrator.watch import Silent, Watch

if TYPE_CHECKING:
    from mlflow import MlflowClient

URI = "MLFLOW_TRACKING_URI"
_RUN, _LOGGED = "orchestrator.run", "orchestrator.attempts"  # tags: ours, and how many attempts are there
_KEPT = {".md", ".json", ".yaml", ".py"}
_PATIENCE_S = 120  # for what is still to be logged when the run is over

Say = Callable[[str], None]


@contextmanager
def following(settings: MlflowSettings, say: Say) -> Iterator[tuple[Watch, ...]]:
    """The watcher, where it is asked for; () otherwise. Raises UsageError where it cannot work."""
    if not settings.log:
        yield ()
        return
    require()
    tracking = Tracking(settings.experiment, say)
    try:
        yield (tracking,)
    finally:
        tracking.close()


def require() -> None:
    """Raises UsageError where nothing could be logged."""
    if not os.environ.get(URI):
        raise UsageError(f"mlflow.log is on and {URI} is not set: say where to log, such as sqlite:///mlflow.db")
    try:
        import mlflow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"mlflow.log is on and mlflow cannot be imported ({error}): pip install '.[mlflow]'"
        ) from error


class Tracking(Silent):
    """Logs one run."""

    def __init__(self, experiment: str, say: Say) -> None:
        self._say = say
        self._folder = Path()
        self._asked = ("", 0)  # stage and round
        self._todo: queue.SimpleQueue[Callable[[_Store], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, args=(experiment,), name="mlflow", daemon=True)
        self._thread.start()

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """A run of MLflow's for it: the one that it had, where it is taken up again."""
        self._folder = folder
        self._todo.put(lambda store: store.begin(run, judging))

    def asking(self, number: int, stage: str, round_: int) -> None:
        """Which calls the next replies answer."""
        self._asked = (stage, round_)

    def answered(self, number: int, reply: Reply) -> None:
        """A trace of the call."""
        stage, round_ = self._asked
        answered_ns, prompt = time.time_ns(), kept.folder(self._folder, number, stage, round_) / kept.PROMPT
        self._todo.put(lambda store: store.call(number, stage, round_, prompt, reply, answered_ns))

    def judged(self, attempt: Attempt) -> None:
        """The attempt's metrics; its number is the step."""
        self._todo.put(lambda store: store.attempt(attempt))

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        """What measuring it came to."""
        self._todo.put(lambda store: store.measurement(attempt, measured))

    def decided(self, run: Run, folder: Path) -> None:
        """The decision, and the record's files."""
        self._todo.put(lambda store: store.end(run, folder))

    def recorded(self, run: Run) -> None:
        """A run that our machinery ended is over too."""
        if run.error:
            folder = self._folder
            self._todo.put(lambda store: store.end(run, folder))

    def close(self) -> None:
        """Waits for what is still to be logged, not for ever."""
        self._todo.put(None)
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            self._say(f"mlflow: still not done after {_PATIENCE_S} s; what is missing there is in {self._folder}")

    def _work(self, experiment: str) -> None:
        """The thread: one thing after the other, until the end or the first failure."""
        from mlflow.exceptions import MlflowException

        try:
            store = _Store(experiment)
            while (log := self._todo.get()) is not None:
                log(store)
            store.flush()
        except (MlflowException, OSError) as error:  # a server's refusal, a connection, a file
            self._say(f"mlflow: nothing more is logged: {printable(' '.join(str(error).split()), 300)}")


class _Store:
    """MLflow's side of one run. Used by one thread."""

    def __init__(self, experiment: str) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow import MlflowClient

        self._client: MlflowClient = MlflowClient()
        found = self._client.get_experiment_by_name(experiment)
        self._experiment = found.experiment_id if found else self._client.create_experiment(experiment)
        self._run = ""
        self._logged = 0  # attempts that an earlier process has logged

    def begin(self, run: Run, judging: Judging) -> None:
        """The run that has our id, or a new one."""
        known = self._client.search_runs([self._experiment], f"tags.`{_RUN}` = '{run.id}'", max_results=1)
        if known:
            self._run = known[0].info.run_id
            self._logged = int(known[0].data.tags.get(_LOGGED, 0))
            self._client.update_run(self._run, status="RUNNING")
            return
        tags = {_RUN: run.id, "op": run.op, "agent": run.agent, "device": judging.device, "baseline": run.baseline}
        tags |= {f"version.{name}": version for name, version in judging.versions.items()}
        self._run = self._client.create_run(self._experiment, tags=tags, run_name=run.id).info.run_id
        for name in ("op", "agent"):
            self._client.log_param(self._run, name, tags[name])

    def call(self, number: int, stage: str, round_: int, prompt: Path, reply: Reply, answered_ns: int) -> None:
        """A trace: the prompt as it was sent, the reply as it came, what it cost."""
        if number <= self._logged:
            return
        usage = reply.usage
        began_ns = answered_ns - int(usage.latency_s * 1e9)
        told = {"model": reply.model, "requests": usage.requests, "truncated": reply.truncated}
        told |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost_usd": usage.cost_usd}
        span = self._client.start_trace(
            f"{stage}, round {round_}",
            span_type="LLM",
            inputs={"prompt": prompt.read_text(encoding="utf-8", errors="replace")},
            tags={_RUN: self._run},
            experiment_id=self._experiment,
            start_time_ns=began_ns,
            run_id=self._run,
        )
        self._client.end_trace(span.trace_id, {"reply": reply.text}, told, end_time_ns=answered_ns)

    def attempt(self, attempt: Attempt) -> None:
        """What the attempt came to, by its number."""
        self._client.set_tag(self._run, f"attempt.{attempt.number:02}", f"{attempt.stage} {attempt.status}")
        if attempt.number <= self._logged:
            return
        self._metrics(attempt.number, metrics(attempt))
        self._client.set_tag(self._run, _LOGGED, attempt.number)

    def measurement(self, attempt: int, measured: Measured) -> None:
        """The figures that decide, by the attempt's number; none of a measurement that is none."""
        if weigh.fault(measured):
            return
        found = weigh.weigh(measured, rungs_left=0)
        names = ("speedup_low", "speedup_high", "slowest_speedup", "roofline_share", "noise")
        self._metrics(attempt, {name: getattr(found, name) for name in names})

    def end(self, run: Run, folder: Path) -> None:
        """The decision, the record's files, the end."""
        decision = run.verdict.decision if run.verdict else "none"
        self._client.set_tag(self._run, "decision", decision)
        self._client.set_tag(self._run, "reason", run.error or (run.verdict.reason if run.verdict else ""))
        for path in artefacts(folder):
            self._client.log_artifact(self._run, str(path), str(path.parent.relative_to(folder)).removeprefix("."))
        self._client.set_terminated(self._run, "FAILED" if run.error else "FINISHED")

    def flush(self) -> None:
        """What MLflow itself still has to send."""
        import mlflow

        mlflow.flush_trace_async_logging()

    def _metrics(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self._run, name, value, step=step)


def metrics(attempt: Attempt) -> dict[str, float]:
    """An attempt in numbers; what is not known is left out."""
    report, usage = attempt.report, attempt.usage
    worst = {
        name: max((value for case in report.cases if (value := getattr(case, name)) is not None), default=None)
        for name in ("tolerance_ratio", "precision", "max_abs", "max_rel")
    }
    known: dict[str, Any] = {
        "passed": int(report.passed),
        "passed_cases": report.passed_cases,
        "cases": report.expected_cases,
        **{f"worst_{name}": value for name, value in worst.items()},
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "model_s": usage.latency_s,
        "judge_s": report.seconds.get("total"),
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def artefacts(folder: Path) -> list[Path]:
    """The files of a run's record that say what happened, its kernels among them; not the test of each."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in _KEPT]
    return [path for path in found if path.parent.name != "job" or path.name.endswith("_triton.py")]
