"""The log of a batch or a night: one JSON line an event, with the run, the op and the round that it belongs to.

Owns the form of a line, and that no secret is in one. For machines and for looking up afterwards; the record of a run
is not here but in its folder.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.agents.keys import AnthropicKeys, OpenAIKeys
from orchestrator.measured import Measured
from orchestrator.nights.webhook import WebhookKey
from orchestrator.records import Attempt, Judging, Reply, Run
from orchestrator.tree import os_errors
from orchestrator.watch import Silent

_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|ghp|gho|hf)[-_][A-Za-z0-9_-]{16,}|(?<=Bearer )\S+")


class Journal:
    """Appends events to a file. A line is written at once, so that a kill loses none."""

    def __init__(self, file: Path, **of: str) -> None:
        """`of` names what is logged: a batch or a night, by its id."""
        self._file = file
        self._of = of
        self._secrets = known_secrets()

    def event(self, event: str, **facts: object) -> None:
        """One line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {name: redacted(fact, self._secrets) if isinstance(fact, str) else fact for name, fact in facts.items()}
        line = json.dumps({"time": now, "event": event, **self._of} | told)
        with os_errors(f"write {self._file}"), self._file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class Noting(Silent):
    """The watcher that notes the steps of one run."""

    def __init__(self, journal: Journal, op: str, run: str) -> None:
        self._journal = journal
        self._of: dict[str, object] = {"op": op, "run": run}

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """Begun, or taken up."""
        self._journal.event("run_started", **self._of, device=judging.device)

    def asking(self, number: int, stage: str, round_: int) -> None:
        """From here on, events are of this round."""
        self._of |= {"stage": stage, "round": round_}
        self._journal.event("asking", **self._of, attempt=number)

    def answered(self, number: int, reply: Reply) -> None:
        """An answer, and what it cost."""
        usage = reply.usage
        tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        cost = {"cost_usd": usage.cost_usd, "latency_s": usage.latency_s, "requests": usage.requests}
        self._journal.event("answered", **self._of, attempt=number, model=reply.model, **tokens, **cost)

    def judged(self, attempt: Attempt) -> None:
        """A verdict."""
        self._journal.event("judged", **self._of, attempt=attempt.number, status=attempt.status)

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        """A measurement."""
        self._journal.event("measured", **self._of, attempt=attempt, status=measured.status, seconds=measured.seconds)

    def decided(self, run: Run, folder: Path) -> None:
        """The decision."""
        if run.verdict is not None:
            self._journal.event("decided", **self._of, decision=run.verdict.decision, reason=run.verdict.reason)

    def merged(self, run: Run, commit: str) -> None:
        """A new champion."""
        self._journal.event("merged", **self._of, commit=commit)


def redacted(text: str, known: tuple[str, ...]) -> str:
    """The text without the secrets that we know, and without what looks like one."""
    for secret in known:
        text = text.replace(secret, "[secret]")
    return _LOOKS_LIKE_A_KEY.sub("[secret]", text)


def known_secrets() -> tuple[str, ...]:
    """The keys that this process may send to a provider, and the address of a webhook."""
    keys = (AnthropicKeys().api_key, OpenAIKeys().api_key, WebhookKey().webhook_url)
    return tuple(key.get_secret_value() for key in keys if key is not None and key.get_secret_value())
