"""What both API agents owe: retries, one-line errors, counted requests. Through the vendors' real clients.

What only one of them does is in test_anthropic.py and test_openai.py.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from orchestrator.agents import Request, Wordless
from orchestrator.agents.anthropic import AnthropicAgent
from orchestrator.agents.failures import Refusal, refused_parameter
from orchestrator.agents.openai import OpenAIAgent
from orchestrator.agents.pricing import Price, PriceTable
from orchestrator.agents.retry import RetryPolicy
from orchestrator.agents.wire import without
from orchestrator.errors import AgentError, UsageError

from .loopback import Answer, Server, anthropic_events, closed_port, error, openai_events, sse

KEY = "sk-test-0123456789"
QUICK = RetryPolicy(max_tries=3, max_total_s=20, first_wait_s=0.01, max_wait_s=2.0)


@dataclass(frozen=True)
class Dialect:
    """One of the two agents, and how its provider's server speaks."""

    agent: type[AnthropicAgent] | type[OpenAIAgent]
    variables: str
    root: str
    path: str
    events: Callable[..., tuple[bytes, ...]]

    def point_at(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set the key and the address."""
        monkeypatch.setenv(f"{self.variables}_API_KEY", KEY)
        monkeypatch.setenv(f"{self.variables}_BASE_URL", url + self.root)


@pytest.fixture(
    params=[
        Dialect(AnthropicAgent, "ANTHROPIC", "", "/v1/messages", anthropic_events),
        Dialect(OpenAIAgent, "OPENAI", "/v1", "/v1/chat/completions", openai_events),
    ],
    ids=["anthropic", "openai"],
)
def dialect(request: pytest.FixtureRequest, server: Server, monkeypatch: pytest.MonkeyPatch) -> Dialect:
    """Each of the two in turn, pointed at the scripted server."""
    spoken: Dialect = request.param
    spoken.point_at(server.url, monkeypatch)
    return spoken


async def test_a_stream_becomes_a_reply(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [sse(*dialect.events(("```python\n", "x = 1\n", "```")))]
    reply = await dialect.agent(policy=QUICK).propose(request_)
    assert reply.text == "```python\nx = 1\n```"
    assert reply.model in ("claude-test-20990101", "served-model")
    assert reply.usage.requests == 1
    assert 0 < reply.usage.latency_s < 5
    assert [asked.path for asked in server.asked] == [dialect.path]


async def test_events_split_at_any_byte(dialect: Dialect, server: Server, request_: Request) -> None:
    whole = b"".join(dialect.events(("α", "β")))
    server.answers = [sse(*(whole[i : i + 7] for i in range(0, len(whole), 7)))]
    assert (await dialect.agent(policy=QUICK).propose(request_)).text == "αβ"


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
async def test_passing_failures_are_asked_again(
    dialect: Dialect, server: Server, request_: Request, status: int
) -> None:
    server.answers = [error(status, "busy"), sse(*dialect.events())]
    reply = await dialect.agent(policy=QUICK).propose(request_)
    assert reply.text == "Hello world"
    assert reply.usage.requests == len(server.asked) == 2


@pytest.mark.parametrize(
    ("headers", "waited_s"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after-ms": "300", "retry-after": "60"}, 0.3),
        ({"retry-after": "3600"}, 0.5),
    ],
    ids=["seconds", "milliseconds first", "capped"],
)
async def test_the_wait_asked_for_is_kept(
    dialect: Dialect, server: Server, request_: Request, headers: dict[str, str], waited_s: float
) -> None:
    server.answers = [error(429, "slow down", headers=headers), sse(*dialect.events())]
    told: list[tuple[float, str]] = []
    policy = replace(QUICK, max_wait_s=0.5 if "3600" in headers.values() else 2.0)
    agent = dialect.agent(policy=policy, on_wait=lambda seconds, reason: told.append((seconds, reason)))
    await agent.propose(request_)
    gap_s = server.asked[1].at_s - server.asked[0].at_s
    assert waited_s <= gap_s < waited_s + 0.6
    assert [seconds for seconds, _ in told] == [pytest.approx(waited_s, abs=0.01)]
    assert "429" in told[0][1]
    assert "slow down" in told[0][1]


async def test_waiting_leaves_the_loop_free(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [error(529, "overloaded", headers={"retry-after-ms": "400"}), sse(*dialect.events())]
    proposal = asyncio.create_task(dialect.agent(policy=QUICK).propose(request_))
    longest_s, last = 0.0, time.monotonic()
    while not proposal.done():
        await asyncio.sleep(0.005)
        longest_s, last = max(longest_s, time.monotonic() - last), time.monotonic()
    await proposal
    assert longest_s < 0.3


@pytest.mark.parametrize("ends", ["cut", "closed"])
async def test_a_cut_stream_is_asked_again(dialect: Dialect, server: Server, request_: Request, ends: str) -> None:
    whole = dialect.events(("half a ", "reply"))
    begun = whole[: 1 + next(i for i, piece in enumerate(whole) if b"half" in piece)]
    server.answers = [sse(*begun, ends=ends), sse(*dialect.events())]
    reply = await dialect.agent(policy=QUICK).propose(request_)
    assert reply.text == "Hello world"  # nothing of the half that came first
    assert reply.usage.requests == 2


@pytest.mark.parametrize(
    "malformed",
    [
        b"event: message_start\ndata: {not json\n\n",
        b"event: message_start\ndata: [1, 2]\n\n",
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "delta": 3, "choices": 3}\n\n',
        b"event: message_start\ndata: \xff\xfe\n\n",
        b"<html>Sign in to continue</html>",
        b"",
    ],
    ids=["no JSON", "a list", "wrong types", "no UTF-8", "a web page", "nothing"],
)
async def test_a_malformed_body_is_asked_again(
    dialect: Dialect, server: Server, request_: Request, malformed: bytes
) -> None:
    server.answers = [sse(*([malformed] if malformed else [])), sse(*dialect.events())]
    reply = await dialect.agent(policy=QUICK).propose(request_)
    assert reply.text == "Hello world"
    assert reply.usage.requests == 2


async def test_an_error_inside_a_stream_is_asked_again(dialect: Dialect, server: Server, request_: Request) -> None:
    broken = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    begun = dialect.events()[:3]
    server.answers = [sse(*begun, f"event: error\ndata: {broken}\n\n".encode()), sse(*dialect.events())]
    reply = await dialect.agent(policy=QUICK).propose(request_)
    assert reply.text == "Hello world"
    assert reply.usage.requests == 2


@pytest.mark.parametrize(
    "slow", [{"delay_s": 0.8}, {"pause_s": 0.12}], ids=["no first byte", "bytes that drip for too long"]
)
async def test_a_timeout_is_asked_again(
    dialect: Dialect, server: Server, request_: Request, slow: dict[str, float]
) -> None:
    server.answers = [sse(*dialect.events(), **slow), sse(*dialect.events())]
    told: list[str] = []
    agent = dialect.agent(policy=QUICK, timeout_s=0.3, on_wait=lambda _, reason: told.append(reason))
    reply = await agent.propose(request_)
    assert reply.text == "Hello world"
    assert reply.usage.requests == 2
    assert told[0] in ("no whole reply in time", "the connection timed out")


async def test_patience_ends_after_the_tries(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [error(500, "broken\nagain")] * 9
    with pytest.raises(AgentError, match=r"3 requests.*HTTP 500: broken again") as caught:
        await dialect.agent(policy=QUICK).propose(request_)
    assert len(server.asked) == 3  # the client's own retries would make it more
    assert "\n" not in str(caught.value)


async def test_patience_ends_after_the_time(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [error(529, "overloaded", headers={"retry-after": "2"})] * 9
    started = time.monotonic()
    with pytest.raises(AgentError, match="overloaded"):
        await dialect.agent(policy=replace(QUICK, max_total_s=1.0)).propose(request_)
    assert time.monotonic() - started < 1.0  # a wait that would end too late is not begun
    assert len(server.asked) == 1


async def test_nobody_listens(dialect: Dialect, request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect.point_at(f"http://127.0.0.1:{closed_port()}", monkeypatch)
    told: list[str] = []
    with pytest.raises(AgentError, match=r"3 requests.*no connection to http://127"):
        await dialect.agent(policy=QUICK, on_wait=lambda _, reason: told.append(reason)).propose(request_)
    assert len(told) == 2


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_its_variable(
    dialect: Dialect, server: Server, request_: Request, status: int
) -> None:
    server.answers = [error(status, f"invalid key {KEY} ({KEY[:9]}***)")] * 3
    with pytest.raises(UsageError) as caught:
        await dialect.agent(policy=QUICK).propose(request_)
    assert len(server.asked) == 1
    assert f"{dialect.variables}_API_KEY" in str(caught.value)
    assert server.url in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.__cause__)
    # A 403 may say why the key is not enough; a 401 may repeat part of it, as this one does.
    assert ("invalid key [key]" in str(caught.value)) is (status == 403)


async def test_an_unknown_model_names_model_and_address(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [error(404, "model: no-such")] * 3
    with pytest.raises(UsageError) as caught:
        await dialect.agent(model="no-such-model", policy=QUICK).propose(request_)
    assert len(server.asked) == 1
    assert "no-such-model" in str(caught.value)
    assert server.url in str(caught.value)
    assert f"{dialect.variables}_BASE_URL" in str(caught.value)


@pytest.mark.parametrize("status", [400, 402, 413])
async def test_a_refusal_is_passed_on_once(dialect: Dialect, server: Server, request_: Request, status: int) -> None:
    server.answers = [error(status, f"prompt is too long, {KEY}")] * 3
    with pytest.raises(AgentError, match=rf"HTTP {status}\): prompt is too long") as caught:
        await dialect.agent(policy=QUICK).propose(request_)
    assert len(server.asked) == 1
    assert KEY not in str(caught.value)


async def test_a_web_page_as_an_error(dialect: Dialect, server: Server, request_: Request) -> None:
    page = b"<html>\n<h1>Bad gateway</h1>\n" + b"x" * 5000
    server.answers = [Answer(400, {"content-type": "text/html"}, (page,))]
    with pytest.raises(AgentError, match="Bad gateway") as caught:
        await dialect.agent(policy=QUICK).propose(request_)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


async def test_an_empty_reply_is_no_answer(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [sse(*dialect.events((" \n",))), sse(*dialect.events(("a word",)))]
    with pytest.raises(Wordless, match="empty reply") as caught:
        await dialect.agent(policy=QUICK).propose(request_)
    said = await dialect.agent(policy=QUICK).propose(request_)
    spent = caught.value.reply
    assert spent.model == said.model and spent.usage.requests == 1
    assert replace(spent.usage, latency_s=0.0) == replace(said.usage, latency_s=0.0), "it was paid as any reply"


async def test_no_word_before_the_limit(dialect: Dialect, server: Server, request_: Request) -> None:
    stop = "max_tokens" if dialect.agent is AnthropicAgent else "length"
    server.answers = [sse(*dialect.events((), stop=stop)), sse(*dialect.events(("cut he",), stop=stop))]
    with pytest.raises(AgentError, match="raise max_tokens"):
        await dialect.agent(policy=QUICK).propose(request_)
    cut = await dialect.agent(policy=QUICK).propose(request_)
    assert (cut.text, cut.truncated) == ("cut he", True)


async def test_cost_by_the_table(dialect: Dialect, server: Server, request_: Request) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}
    events = dialect.events(usage=usage) if dialect.agent is OpenAIAgent else dialect.events()
    price = Price(input=1.0, output=10.0)
    server.answers = [sse(*events)]
    table = PriceTable(prices={"claude-test": price, "served": price})
    reply = await dialect.agent(policy=QUICK, prices=table).propose(request_)
    assert reply.usage.cost_usd == pytest.approx(80e-6)


async def test_one_agent_answers_several_ops_and_several_loops(
    dialect: Dialect, server: Server, request_: Request
) -> None:
    server.answers = [sse(*dialect.events())] * 5
    agent = dialect.agent(policy=QUICK)
    replies = await asyncio.gather(*(agent.propose(request_) for _ in range(4)))
    assert [reply.usage.requests for reply in replies] == [1] * 4
    reply = await asyncio.to_thread(lambda: asyncio.run(agent.propose(request_)))
    assert reply.text == "Hello world"


async def test_cancelling_ends_it(dialect: Dialect, server: Server, request_: Request) -> None:
    server.answers = [sse(*dialect.events(), delay_s=0.3)]
    proposal = asyncio.create_task(dialect.agent(policy=QUICK).propose(request_))
    while not server.asked:
        await asyncio.sleep(0.01)
    proposal.cancel()
    with pytest.raises(asyncio.CancelledError):
        await proposal
    assert len(server.asked) == 1


def test_a_missing_key(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{dialect.variables}_API_KEY", "  ")
    monkeypatch.delenv(f"{dialect.variables}_BASE_URL")
    with pytest.raises(UsageError, match=f"{dialect.variables}_API_KEY"):
        dialect.agent()


def test_a_key_that_no_header_can_carry(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{dialect.variables}_API_KEY", "sk-ünsound")
    with pytest.raises(UsageError, match=f"{dialect.variables}_API_KEY") as caught:
        dialect.agent()
    assert "nsound" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/", "http://"])
def test_an_address_that_is_none(dialect: Dialect, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(f"{dialect.variables}_BASE_URL", url)
    with pytest.raises(UsageError, match=f"{dialect.variables}_BASE_URL"):
        dialect.agent()


def test_the_key_shows_nowhere(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{dialect.variables}_BASE_URL", "https://me:hunter2@proxy.example/v1")
    agent = dialect.agent()
    shown = repr(agent) + repr(vars(agent)) + repr(vars(agent._line)) + agent.address
    assert KEY not in shown
    assert "hunter2" not in agent.address + repr(vars(agent._line))


@pytest.mark.parametrize(
    ("message", "param", "expected"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported; use 'max_completion_tokens'",
            "max_tokens",
            "max_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0.2; only the default (1)", "temperature", "temperature"),
        ("Unrecognized request argument supplied: stream_options", None, "stream_options"),
        ("stream_options: Extra inputs are not permitted", None, "stream_options"),
        ("max_tokens is too large: this model does not support more than 4096", "max_tokens", None),
        ("'temperature' does not support 9. Supported values are: 0 to 2", "temperature", None),
        ("the context is 8192 tokens, max_tokens asks for more", None, None),
        ("unknown model", None, None),
    ],
)
def test_which_parameter_is_refused(message: str, param: str | None, expected: str | None) -> None:
    options = {"max_tokens": 1, "temperature": 0.2, "stream_options": {}}
    refusal = Refusal(400, message, {"message": message, "param": param}, {})
    assert refused_parameter(refusal, options) == expected


def test_leaving_out_ends() -> None:
    first = without({"max_tokens": 5, "temperature": 1}, "max_tokens", {"max_tokens"})
    assert first == {"temperature": 1, "max_completion_tokens": 5}
    assert without(first, "max_completion_tokens", {"max_tokens", "max_completion_tokens"}) == {"temperature": 1}
