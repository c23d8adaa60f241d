"""What the Anthropic agent asks for and reads, through the vendor's real client and a scripted server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.agents import Request
from orchestrator.agents.anthropic import DEFAULT_MODEL, AnthropicAgent
from orchestrator.agents.retry import RetryPolicy
from orchestrator.errors import AgentError, UsageError

from .loopback import Server, anthropic_events, error, sse

QUICK = RetryPolicy(max_tries=2, first_wait_s=0.01)
MARK = {"type": "ephemeral"}


@pytest.fixture(autouse=True)
def configured(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test\n")  # as it comes out of a file
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)


async def test_the_request(server: Server, request_: Request) -> None:
    server.answers = [sse(*anthropic_events())]
    await AnthropicAgent(max_tokens=4096, policy=QUICK).propose(request_)
    asked = server.asked[0]
    # Older clients send the key in the one header, newer ones in the other.
    assert {asked.headers.get("x-api-key"), asked.headers.get("authorization")} & {"sk-ant-test", "Bearer sk-ant-test"}
    assert asked.body == {
        "model": DEFAULT_MODEL,
        "max_tokens": 4096,
        "stream": True,
        "system": [{"type": "text", "text": "You write Triton kernels.", "cache_control": MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Write rmsnorm.", "cache_control": MARK}]},
            {"role": "assistant", "content": "Here."},
            {"role": "user", "content": "Wrong in the last column."},
        ],
    }


async def test_what_is_sent_only_when_given(server: Server, request_: Request) -> None:
    server.answers = [sse(*anthropic_events())]
    agent = AnthropicAgent(
        model="claude-x", max_tokens=9000, temperature=0.3, thinking_budget=2048, effort="high", policy=QUICK
    )
    await agent.propose(replace(request_, prompt=replace(request_.prompt, system="")))
    body = server.asked[0].body
    assert body["model"] == "claude-x"
    assert body["temperature"] == 0.3
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert body["output_config"] == {"effort": "high"}
    assert "system" not in body  # the API takes no empty text


async def test_usage_counts_all_that_was_read(server: Server, request_: Request) -> None:
    start = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 2000,
        "output_tokens": 1,
    }
    server.answers = [sse(*anthropic_events(start_usage=start, end_usage={"output_tokens": 57}))]
    usage = (await AnthropicAgent(policy=QUICK).propose(request_)).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (2130, 2000, 57)
    assert usage.cost_usd is None


async def test_thinking_is_not_the_reply(server: Server, request_: Request) -> None:
    server.answers = [sse(*anthropic_events(thinking="hm, a kernel"))]
    assert (await AnthropicAgent(policy=QUICK).propose(request_)).text == "Hello world"


async def test_a_refusal_of_the_model(server: Server, request_: Request) -> None:
    server.answers = [sse(*anthropic_events((), stop="refusal"))]
    with pytest.raises(AgentError, match="declined to answer"):
        await AnthropicAgent(policy=QUICK).propose(request_)


async def test_a_parameter_that_the_model_does_not_take(server: Server, request_: Request) -> None:
    kind = "invalid_request_error"
    server.answers = [
        error(400, '"thinking.type.enabled" is not supported for this model. Use adaptive.', type=kind),
        error(400, "`temperature` is deprecated for this model.", type=kind),
        sse(*anthropic_events()),
        sse(*anthropic_events()),
    ]
    told: list[tuple[float, str]] = []
    agent = AnthropicAgent(temperature=0.3, thinking_budget=2048, policy=QUICK, on_wait=lambda *said: told.append(said))
    reply = await agent.propose(request_)
    assert reply.usage.requests == 3
    assert "thinking" not in server.asked[2].body
    assert "temperature" not in server.asked[2].body
    assert [seconds for seconds, _ in told] == [0.0, 0.0]
    assert "does not take thinking" in told[0][1]
    assert (await agent.propose(request_)).usage.requests == 1  # what was learnt is kept


async def test_an_error_inside_a_stream_that_no_retry_mends(server: Server, request_: Request) -> None:
    event = b'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"bad turn"}}\n\n'
    server.answers = [sse(event)] * 2
    with pytest.raises(AgentError, match="bad turn"):
        await AnthropicAgent(policy=QUICK).propose(request_)
    assert len(server.asked) == 1


@pytest.mark.parametrize("budget", [10, 4096, 5000])
def test_a_thinking_budget_that_cannot_be(budget: int) -> None:
    with pytest.raises(UsageError, match="thinking budget"):
        AnthropicAgent(max_tokens=4096, thinking_budget=budget)
