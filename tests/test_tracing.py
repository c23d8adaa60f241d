"""A run as spans: real OpenTelemetry, read back from memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from orchestrator import tracing
from orchestrator.attempt import Judged
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.records import Decision, Judging, Reply, Run, Usage, Verdict
from tests.test_finish import BAD, recorder_of

KEY = "of.no.known.form"


def test_a_runs_steps_are_spans_without_secrets(rmsnorm: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed here")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    run = recorder_of(rmsnorm, tmp_path, Judged(BAD, b"x = 1\n")).run
    watch = tracing.Tracing(provider.get_tracer("test"))
    watch.run_started(run, tmp_path, Judging("cpu", True, {}, ()))
    watch.asking(1, "correct", 1)
    watch.answered(1, Reply("text", "a model", Usage(1.0, 70, 30)))
    watch.judging(1)
    watch.judged(run.attempts[0])
    verdict = Verdict(Decision.ESCALATE, f"it said {KEY}")
    watch.decided(_with(run, verdict), tmp_path)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert list(spans) == ["model call", "judge job", "decision", "run"]
    assert {span.parent.span_id for span in spans.values() if span.parent} == {spans["run"].context.span_id}
    assert dict(spans["model call"].attributes or {}) == {
        **{"stage": "correct", "round": 1, "model": "a model", "requests": 1, "input_tokens": 70, "output_tokens": 30},
    }
    assert dict(spans["judge job"].attributes or {}) == {"attempt": 1, "status": "WRONG_VALUES"}
    assert KEY not in str([dict(span.attributes or {}) for span in spans.values()])

    failed = tracing.Tracing(provider.get_tracer("test"))
    failed.run_started(run, tmp_path, Judging("cpu", True, {}, ()))
    failed.asking(1, "correct", 1)
    failed.recorded(Run(run.id, run.op, run.branch, run.baseline, run.started, run.agent, error=f"refused {KEY}"))
    ended = exporter.get_finished_spans()[-1]
    assert ended.name == "run" and not ended.status.is_ok and KEY not in str(ended.status.description)


def test_nothing_is_traced_unless_a_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tracing.ENDPOINT, raising=False)
    assert tracing.watchers() == ()
    monkeypatch.setenv(tracing.ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(UsageError, match=r"pip install '\.\[otel\]'"):
        tracing.watchers()


def _with(run: Run, verdict: Verdict) -> Run:
    return Run(*(run.id, run.op, run.branch, run.baseline, run.started, run.agent, run.attempts), verdict=verdict)
