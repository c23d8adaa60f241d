"""A run as OpenTelemetry spans: model calls, judge jobs, measurements, the decision.

Owns which spans there are and what they say: ids, counts, statuses; of texts only those from which secrets were taken.
Where they go is OpenTelemetry's own configuration; nothing is traced unless OTEL_EXPORTER_OTLP_ENDPOINT names a
collector.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import UsageError
from orchestrator.journal import known_secrets, redacted
from orchestrator.measured import Measured
from orchestrator.records import Attempt, Judging, Reply, Run
from orchestrator.watch import Silent, Watch

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def watchers() -> tuple[Watch, ...]:
    """The one watcher that traces a run, where the environment asks for it. Raises UsageError where it cannot be."""
    return (Tracing(_tracer()),) if os.environ.get(ENDPOINT) else ()


@functools.cache
def _tracer() -> Tracer:
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError(f"{ENDPOINT} is set: install what sends to it, pip install '.[otel]', or unset it") from error
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracer: Tracer = provider.get_tracer("orchestrator")
    return tracer


class Tracing(Silent):
    """The watcher that makes spans of one run's steps: one for the run, and in it one a step."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._secrets = known_secrets()
        self._run: Span | None = None
        self._step: Span | None = None
        self._calls: dict[int, Span] = {}  # under way, by attempt: those of a round go side by side

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """Begun, or taken up."""
        self._run = self._tracer.start_span("run", attributes={"op": run.op, "run": run.id, "device": judging.device})

    def asking(self, number: int, stage: str, round_: int) -> None:
        """A model has it."""
        self._end()
        if (call := self._started("model call", stage=stage, round=round_)) is not None:
            self._calls[number] = call

    def answered(self, number: int, reply: Reply) -> None:
        """It has answered."""
        usage = reply.usage
        counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost_usd": usage.cost_usd}
        known = {name: count for name, count in counts.items() if count is not None}
        self._ended(self._calls.pop(number, None), model=reply.model, requests=usage.requests, **known)

    def judging(self, number: int) -> None:
        """The judge has it; a call that is still open has failed."""
        self._ended(self._calls.pop(number, None))
        self._begin("judge job")

    def judged(self, attempt: Attempt) -> None:
        """A verdict."""
        self._end(attempt=attempt.number, status=str(attempt.status))

    def measuring(self, text: str) -> None:
        """A kernel is being timed."""
        if self._step is None:
            self._begin("measurement")

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        """It was."""
        self._end(attempt=attempt, status=str(measured.status))

    def decided(self, run: Run, folder: Path) -> None:
        """The decision ends the run."""
        if run.verdict is not None:
            self._begin("decision")
            self._end(decision=str(run.verdict.decision), reason=run.verdict.reason)
        self._close()

    def recorded(self, run: Run) -> None:
        """A run that a failure of ours ended has no decision."""
        if run.error:
            self._close(run.error)

    def _begin(self, name: str, **facts: str | int) -> None:
        self._end()
        self._step = self._started(name, **facts)

    def _end(self, **facts: str | int | float) -> None:
        self._ended(self._step, **facts)
        self._step = None

    def _started(self, name: str, **facts: str | int) -> Span | None:
        from opentelemetry.trace import set_span_in_context

        if self._run is None:
            return None
        return self._tracer.start_span(name, set_span_in_context(self._run), attributes=facts)

    def _ended(self, span: Span | None, **facts: str | int | float) -> None:
        if span is not None:
            for name, fact in facts.items():
                span.set_attribute(name, redacted(fact, self._secrets) if isinstance(fact, str) else fact)
            span.end()

    def _close(self, error: str = "") -> None:
        from opentelemetry.trace import StatusCode

        self._end()
        while self._calls:
            self._ended(self._calls.popitem()[1])
        if self._run is not None:
            if error:
                self._run.set_status(StatusCode.ERROR, redacted(error, self._secrets))
            self._run.end()
            self._run = None
