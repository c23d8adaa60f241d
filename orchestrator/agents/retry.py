"""When to ask a provider again: how often, how long to wait, when to give up.

Owns the policy alone. Whether a failure is worth another try is decided in `failures`, which raises `Transient` if so.
The clients' own retrying is off, so that requests are counted and waits are seen in one place.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from orchestrator.errors import AgentError

T = TypeVar("T")
OnWait = Callable[[float, str], None]  # seconds to wait (0: none), and why


class Transient(Exception):
    """A failure that another try may not meet. Never leaves the agents."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s  # what the provider asked for, uncapped


@dataclass(frozen=True)
class RetryPolicy:
    """How patient to be. No try begins after `max_total_s`; one that has begun is not cut short by it."""

    max_tries: int = 6
    max_total_s: float = 1800.0
    first_wait_s: float = 1.0  # doubled each time, plus up to this much at random
    max_wait_s: float = 120.0  # caps also what a provider asks for


class Tries:
    """The requests of one proposal: counted, spaced, and given up in time."""

    def __init__(self, provider: str, policy: RetryPolicy, on_wait: OnWait | None = None) -> None:
        self.requests = 0
        self._provider = provider
        self._policy = policy
        self._on_wait = on_wait
        self._started = time.monotonic()

    async def run(self, send: Callable[[], Awaitable[T]]) -> T:
        """Await `send` until it succeeds. Raises AgentError when patience ends; all else passes through at once."""

        async def counted() -> T:
            self.requests += 1
            return await send()

        try:
            return await self._retrying()(counted)
        except Transient as err:
            passed_s = time.monotonic() - self._started
            requests = f"{self.requests} request{'' if self.requests == 1 else 's'}"
            raise AgentError(
                f"{self._provider} gave no answer in {requests} and {passed_s:.0f} s; "
                f"the last: {err.reason}; try later or choose another agent"
            ) from err

    def _retrying(self) -> AsyncRetrying:
        policy = self._policy
        return AsyncRetrying(
            retry=retry_if_exception_type(Transient),
            stop=stop_after_attempt(policy.max_tries) | stop_before_delay(policy.max_total_s),
            wait=self._wait_s,
            before_sleep=self._tell,
            reraise=True,
        )

    def _wait_s(self, state: RetryCallState) -> float:
        asked_s = _failure(state).retry_after_s
        if asked_s is not None:
            return min(asked_s, self._policy.max_wait_s)
        first_s = self._policy.first_wait_s
        return min((wait_exponential(first_s) + wait_random(0, first_s))(state), self._policy.max_wait_s)

    def _tell(self, state: RetryCallState) -> None:
        if self._on_wait is not None:
            self._on_wait(state.upcoming_sleep, _failure(state).reason)


def _failure(state: RetryCallState) -> Transient:
    failure = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(failure, Transient)  # the only one that is retried
    return failure


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The wait a provider asks for, in seconds: `retry-after-ms`, else `retry-after` (seconds or an HTTP date).

    `headers` compares names without regard to case, or holds them in lower case. None when nothing usable is there.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    return seconds if seconds is not None else _until(text, now or datetime.now(UTC))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(value, 0.0) if math.isfinite(value) else None


def _until(text: str | None, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
