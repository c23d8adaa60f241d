"""What the OpenAI agent asks for and reads, through the vendor's real client and a scripted server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.agents import Request
from orchestrator.agents.openai import OpenAIAgent, reasons
from orchestrator.agents.retry import RetryPolicy
from orchestrator.errors import AgentError, UsageError

from .loopback import Answer, Server, error, openai_events, sse

QUICK = RetryPolicy(max_tries=2, first_wait_s=0.01)
COUNTED = {"stream_options": {"include_usage": True}}


@pytest.fixture(autouse=True)
def configured(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")


def _optional(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in ("model", "messages", "stream")}


async def test_the_request_to_a_plain_model(server: Server, request_: Request) -> None:
    server.answers = [sse(*openai_events())]
    await OpenAIAgent(model="gpt-4o", max_tokens=4096, temperature=0.2, policy=QUICK).propose(request_)
    asked = server.asked[0]
    assert asked.headers["authorization"] == "Bearer sk-test"
    assert asked.body["model"] == "gpt-4o"
    assert asked.body["stream"] is True
    assert asked.body["messages"] == [
        {"role": "system", "content": "You write Triton kernels."},
        {"role": "user", "content": "Write rmsnorm."},
        {"role": "assistant", "content": "Here."},
        {"role": "user", "content": "Wrong in the last column."},
    ]
    assert _optional(asked.body) == {"max_tokens": 4096, "temperature": 0.2, **COUNTED}


async def test_the_request_to_a_reasoning_model(server: Server, request_: Request) -> None:
    server.answers = [sse(*openai_events())]
    told: list[str] = []
    agent = OpenAIAgent(
        model="gpt-5.5",
        max_tokens=4096,
        temperature=0.2,
        reasoning_effort="low",
        policy=QUICK,
        on_wait=lambda _, reason: told.append(reason),
    )
    await agent.propose(request_)
    assert _optional(server.asked[0].body) == {"max_completion_tokens": 4096, "reasoning_effort": "low", **COUNTED}
    assert told == ["gpt-5.5 takes no temperature; asking without it"]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("o1", True),
        ("o3-mini-2025-01-31", True),
        ("gpt-5", True),
        ("gpt-5.5-mini", True),
        ("gpt-6-sol", True),
        ("openai/gpt-5", True),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("gpt-5-chat-latest", False),
        ("openai/gpt-oss-120b", False),
        ("deepseek-chat", False),
        ("Qwen/Qwen3-8B", False),
        ("olmo-2", False),
    ],
)
def test_which_models_reason(model: str, expected: bool) -> None:
    assert reasons(model) is expected


async def test_usage(server: Server, request_: Request) -> None:
    usage = {
        "prompt_tokens": 2100,
        "completion_tokens": 60,
        "total_tokens": 2160,
        "prompt_tokens_details": {"cached_tokens": 1920},
    }
    server.answers = [sse(*openai_events(usage=usage))]
    got = (await OpenAIAgent(policy=QUICK).propose(request_)).usage
    assert (got.input_tokens, got.cached_tokens, got.output_tokens) == (2100, 1920, 60)


async def test_no_usage_is_not_zero(server: Server, request_: Request) -> None:
    server.answers = [sse(*openai_events())]
    got = (await OpenAIAgent(policy=QUICK).propose(request_)).usage
    assert (got.input_tokens, got.cached_tokens, got.output_tokens, got.cost_usd) == (None, None, None, None)


async def test_reasoning_is_not_the_reply(server: Server, request_: Request) -> None:
    server.answers = [sse(*openai_events(reasoning="hm, a kernel"))]
    assert (await OpenAIAgent(policy=QUICK).propose(request_)).text == "Hello world"


async def test_a_refusal_of_the_model(server: Server, request_: Request) -> None:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"refusal": "I would rather not."}, "finish_reason": "stop"}]}
    server.answers = [sse(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n")]
    with pytest.raises(AgentError, match="declined to answer: I would rather not"):
        await OpenAIAgent(policy=QUICK).propose(request_)


async def test_parameters_that_a_server_does_not_take(server: Server, request_: Request) -> None:
    server.answers = [
        error(400, "Unrecognized request argument supplied: stream_options"),
        error(
            400,
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        error(400, "'temperature' does not support 0.2 with this model.", param="temperature"),
        sse(*openai_events()),
        sse(*openai_events()),
    ]
    agent = OpenAIAgent(model="new-model", max_tokens=4096, temperature=0.2, policy=QUICK)
    reply = await agent.propose(request_)
    assert reply.text == "Hello world"
    assert reply.usage.requests == 4
    assert _optional(server.asked[3].body) == {"max_completion_tokens": 4096}
    assert (await agent.propose(request_)).usage.requests == 1  # what was learnt is kept


async def test_a_refusal_met_by_several_at_once(server: Server, request_: Request) -> None:
    refused = error(400, "Unsupported parameter: 'max_tokens'", param="max_tokens", delay_s=0.1)
    server.answers = [refused, refused, refused, *[sse(*openai_events())] * 3]
    agent = OpenAIAgent(model="new-model", policy=QUICK)
    replies = await asyncio.gather(*(agent.propose(request_) for _ in range(3)))
    assert [reply.usage.requests for reply in replies] == [2, 2, 2]
    assert all("max_completion_tokens" in asked.body for asked in server.asked[3:])


async def test_the_form_in_which_fastapi_refuses(server: Server, request_: Request) -> None:
    detail = [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]
    refused = Answer(422, {"content-type": "application/json"}, (json.dumps({"detail": detail}).encode(),))
    server.answers = [refused, sse(*openai_events())]
    await OpenAIAgent(model="local", policy=QUICK).propose(request_)
    assert "stream_options" not in server.asked[1].body


async def test_a_parameter_is_left_out_only_once(server: Server, request_: Request) -> None:
    server.answers = [error(400, "unsupported parameter: stream_options")] * 9
    with pytest.raises(AgentError, match="stream_options"):
        await OpenAIAgent(model="local", policy=QUICK).propose(request_)
    assert len(server.asked) == 2


async def test_a_value_out_of_range_is_not_left_out(server: Server, request_: Request) -> None:
    server.answers = [error(400, "max_tokens is too large: 32000; at most 4096 are supported", param="max_tokens")] * 2
    with pytest.raises(AgentError, match="too large"):
        await OpenAIAgent(model="gpt-4o", policy=QUICK).propose(request_)
    assert len(server.asked) == 1


async def test_a_spent_quota_is_not_waited_for(server: Server, request_: Request) -> None:
    server.answers = [error(429, "You exceeded your current quota.", code="insufficient_quota")] * 2
    with pytest.raises(AgentError, match="exceeded your current quota"):
        await OpenAIAgent(policy=QUICK).propose(request_)
    assert len(server.asked) == 1


async def test_a_local_server_needs_no_key(server: Server, request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.answers = [sse(*openai_events()), error(401, "who are you?")]
    agent = OpenAIAgent(model="local", policy=QUICK)
    assert (await agent.propose(request_)).text == "Hello world"
    with pytest.raises(UsageError, match="wants a key .* set OPENAI_API_KEY"):
        await agent.propose(request_)
