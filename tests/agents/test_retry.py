"""The wait that a provider asks for, and the growth of the wait where it asks for none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestrator.agents.retry import RetryPolicy, Transient, Tries, retry_after_s
from orchestrator.errors import AgentError, UsageError

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 13:00:30 +0100"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "junk", "retry-after": "9"}, 9.0),
    ],
)
def test_the_wait_asked_for(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == expected


async def test_the_wait_grows_up_to_the_cap() -> None:
    waits: list[float] = []
    policy = RetryPolicy(max_tries=6, first_wait_s=0.01, max_wait_s=0.06)
    tries = Tries("test", policy, lambda seconds, _: waits.append(seconds))

    async def fail() -> None:
        raise Transient("busy")

    with pytest.raises(AgentError, match=r"test gave no answer in 6 requests .* busy"):
        await tries.run(fail)
    assert len(waits) == 5
    for wait_s, at_least_s in zip(waits, (0.01, 0.02, 0.04, 0.06, 0.06), strict=True):
        assert at_least_s <= wait_s <= min(at_least_s + 0.01, 0.06)


async def test_without_advice_two_agents_do_not_wait_alike() -> None:
    waits: list[float] = []
    policy = RetryPolicy(max_tries=2, first_wait_s=0.01)

    async def fail() -> None:
        raise Transient("busy")

    for _ in range(4):
        with pytest.raises(AgentError):
            await Tries("test", policy, lambda seconds, _: waits.append(seconds)).run(fail)
    assert len(set(waits)) > 1


async def test_what_no_wait_mends_passes_at_once() -> None:
    tries = Tries("test", RetryPolicy())

    async def fail() -> None:
        raise UsageError("wrong key")

    with pytest.raises(UsageError, match="wrong key"):
        await tries.run(fail)
    assert tries.requests == 1
