"""What a run leaves in MLflow: a real store in SQLite, and what becomes of a run whose server is not there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from orchestrator import config, tracking
from orchestrator.attempt import Judged
from orchestrator.config import MlflowSettings
from orchestrator.errors import JudgeError, UsageError
from orchestrator.ops import Op
from orchestrator.recorder import Recorder
from orchestrator.records import Attempt, CaseResult, Prompt, Reply, Report, Status, Turn, Usage
from orchestrator.watch import Watch
from tests.measurements import measured, shape
from tests.test_finish import BAD, GOOD, H200, decided

needs_mlflow = pytest.mark.skipif(
    importlib.util.find_spec("mlflow") is None, reason="the extra mlflow is not installed"
)
ON = MlflowSettings(log=True, experiment="kernels")


def begun(op: Op, workspaces: Path, watch: Watch, run_id: str | None = None) -> Recorder:
    """A run whose first kernel was wrong and whose second passed."""
    recorder = Recorder.open(op, "scripted", config.load(), workspaces, H200, watch, run_id)
    replies = (
        Reply("wrong", "a-model", Usage(1.5, 10, 20)),
        Reply("right", "a-model", Usage(2.5, 30, 40, cost_usd=0.5)),
    )
    for round_, (reply, report) in enumerate(zip(replies, (BAD, GOOD), strict=True), 1):
        folder = recorder.asked(Prompt("Write.", (Turn("user", f"Round {round_}."),)), "correct", round_)
        recorder.answered(reply, folder)
        recorder.judged("correct", round_, reply, Judged(report, f"k = {round_}\n".encode()), folder)
    return recorder


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of its own. MLflow keeps the first one of a process for traces, unless it is told to forget."""
    import mlflow.tracing

    mlflow.tracing.reset()
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv(tracking.URI, uri)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)  # where a store in SQLite puts its artefacts
    return uri


@needs_mlflow
def test_a_run_its_rounds_its_calls_and_its_files_are_there(rmsnorm: Op, tmp_path: Path, store: str) -> None:
    from mlflow import MlflowClient

    with tracking.following(ON, pytest.fail) as watches:
        (watch,) = watches
        recorder = begun(rmsnorm, tmp_path, watch)
        run = decided(recorder, measured(shape(40)))
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("kernels")
    (logged,) = client.search_runs([experiment.experiment_id])
    assert logged.info.run_name == run.id and logged.info.status == "FINISHED"
    assert logged.data.tags["decision"] == "MERGE" and logged.data.tags["attempt.01"] == "correct WRONG_VALUES"
    assert logged.data.tags["device"] == "NVIDIA H200" and logged.data.params == {"op": "rmsnorm", "agent": "scripted"}
    history = {
        name: [(one.step, one.value) for one in client.get_metric_history(logged.info.run_id, name)]
        for name in ("passed", "input_tokens", "cost_usd", "speedup_low")
    }
    assert history["passed"] == [(1, 0.0), (2, 1.0)] and history["input_tokens"] == [(1, 10.0), (2, 30.0)]
    assert history["cost_usd"] == [(2, 0.5)]  # of the first it is not known, and that is not 0
    ((step, speedup),) = history["speedup_low"]
    assert step == 2 and speedup == pytest.approx(run.measurement.speedup_low)  # type: ignore[union-attr]
    traces = client.search_traces(locations=[experiment.experiment_id], run_id=logged.info.run_id)
    spans = sorted((trace.data.spans[0] for trace in traces), key=lambda span: span.name)
    assert [span.name for span in spans] == ["correct, round 1", "correct, round 2"]
    assert spans[1].outputs == {"reply": "right"} and "Round 2." in spans[1].inputs["prompt"]
    assert spans[1].attributes["model"] == "a-model" and spans[1].attributes["output_tokens"] == 40
    assert (spans[1].end_time_ns - spans[1].start_time_ns) / 1e9 == pytest.approx(2.5)
    files = {one.path for one in client.list_artifacts(logged.info.run_id)}
    assert {"DECISION.md", "run.json", "config.yaml", "attempts"} <= files
    inner = {one.path for one in client.list_artifacts(logged.info.run_id, "attempts/02-correct-2")}
    assert "attempts/02-correct-2/prompt.md" in inner


@needs_mlflow
def test_a_run_taken_up_again_is_the_same_run_and_logs_nothing_twice(rmsnorm: Op, tmp_path: Path, store: str) -> None:
    from mlflow import MlflowClient

    with tracking.following(ON, pytest.fail) as (watch,):
        recorder = begun(rmsnorm, tmp_path, watch)
        with pytest.raises(JudgeError), recorder.recording():
            raise JudgeError("the judge died")
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("kernels").experiment_id
    (failed,) = client.search_runs([experiment])
    assert failed.info.status == "FAILED" and failed.data.tags["reason"] == "the judge died"
    with tracking.following(ON, pytest.fail) as (watch,):
        decided(begun(rmsnorm, tmp_path, watch, recorder.run.id), measured(shape(40)))
    (logged,) = client.search_runs([experiment])
    assert logged.info.status == "FINISHED" and logged.data.tags["decision"] == "MERGE"
    assert [one.step for one in client.get_metric_history(logged.info.run_id, "passed")] == [1, 2]
    assert len(client.search_traces(locations=[experiment])) == 2


@needs_mlflow
def test_a_store_that_fails_is_said_once_and_the_run_goes_on(
    rmsnorm: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(tracking.URI, "sqlite:////proc/no/such/mlflow.db")
    said: list[str] = []
    with tracking.following(ON, said.append) as (watch,):
        run = decided(begun(rmsnorm, tmp_path, watch), measured(shape(40)))
    assert run.verdict is not None and run.verdict.decision == "MERGE"
    (line,) = said
    assert line.startswith("mlflow: nothing more is logged: ") and "\n" not in line


def test_off_it_is_nothing_and_on_it_needs_to_know_where(monkeypatch: pytest.MonkeyPatch) -> None:
    with tracking.following(MlflowSettings(), pytest.fail) as watches:
        assert watches == ()
    monkeypatch.delenv(tracking.URI, raising=False)
    with pytest.raises(UsageError, match="MLFLOW_TRACKING_URI is not set"), tracking.following(ON, pytest.fail):
        pass


def test_metrics_are_what_is_known(rmsnorm: Op) -> None:
    wrong = CaseResult("a", {"M": 1}, "float32", 1.0, False, Status.WRONG_VALUES, tolerance_ratio=7.0)
    report = Report(Status.WRONG_VALUES, "wrong", cases=(wrong,), expected_cases=2, seconds={"total": 3.0})
    attempt = Attempt(1, "correct", 1, "scripted", "m", "0" * 64, report, Usage(1.0))
    assert tracking.metrics(attempt) == {
        **{"passed": 0.0, "passed_cases": 0.0, "cases": 2.0, "worst_tolerance_ratio": 7.0},
        **{"model_s": 1.0, "judge_s": 3.0},
    }
