"""The agent that asks Anthropic's Messages API.

Owns the shape of the request (what is cached, what is optional) and of the stream. What a failure means and
when to ask again is decided in `failures`, `wire` and `retry`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anthropic
from anthropic.types import MessageParam, TextBlockParam
from pydantic import BaseModel, ConfigDict

from orchestrator.agents import Request
from orchestrator.agents.failures import Options, Provider
from orchestrator.agents.keys import (
    ANTHROPIC_ADDRESS,
    ANTHROPIC_KEY,
    ANTHROPIC_URL,
    AnthropicKeys,
    checked_key,
    checked_url,
    shown_url,
)
from orchestrator.agents.pricing import PriceTable
from orchestrator.agents.retry import OnWait, RetryPolicy
from orchestrator.agents.wire import Heard, Line
from orchestrator.errors import UsageError
from orchestrator.records import Prompt, Reply

DEFAULT_MODEL = "claude-sonnet-5-5"
_SMALLEST_BUDGET = 1024  # the API's own limit


class AnthropicAgent:
    """Proposes with a Claude model. The key is read from ANTHROPIC_API_KEY, the address from ANTHROPIC_BASE_URL.

    temperature, thinking_budget (tokens of manual thinking) and effort ("low" to "max") are sent only when given:
    newer models refuse the first two and think adaptively, older ones do not know the last. What a model refuses is
    left out and said through on_wait.

    A reply cut at max_tokens (thinking counts) is returned as it is, since the judge says what it is worth; one without
    a word of text is an AgentError.
    """

    name = "anthropic"

    def __init__(
        self,
        *,
        model: str | None = None,
        max_tokens: int = 32_000,
        temperature: float | None = None,
        thinking_budget: int | None = None,
        effort: str | None = None,
        timeout_s: float = 900.0,
        policy: RetryPolicy | None = None,
        prices: PriceTable | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        if thinking_budget is not None and not _SMALLEST_BUDGET <= thinking_budget < max_tokens:
            raise UsageError(
                f"a thinking budget of {thinking_budget} tokens must lie between {_SMALLEST_BUDGET} "
                f"and max_tokens ({max_tokens})"
            )
        keys = AnthropicKeys()
        if not keys.api_key:
            raise UsageError(f"{ANTHROPIC_KEY} is not set; set it to your Anthropic key, or choose another agent")
        self.model = model or DEFAULT_MODEL
        self._key = checked_key(keys.api_key, ANTHROPIC_KEY)
        self._url = checked_url(keys.base_url or ANTHROPIC_ADDRESS, ANTHROPIC_URL)
        self._max_tokens = max_tokens
        self.address = shown_url(self._url)
        self._timeout_s = timeout_s
        self._line = Line(
            Provider(self.name, self.model, self.address, ANTHROPIC_KEY, ANTHROPIC_URL, self._key),
            anthropic,
            _options(temperature, thinking_budget, effort),
            timeout_s=timeout_s,
            policy=policy or RetryPolicy(),
            prices=prices,
            on_wait=on_wait,
        )

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`."""
        # A client for each proposal (0.05 s): connections belong to one event loop, and nothing is left open.
        async with anthropic.AsyncAnthropic(
            api_key=self._key.get_secret_value(), base_url=self._url, timeout=self._timeout_s, max_retries=0
        ) as client:
            return await self._line.ask(lambda options: self._send(client, request.prompt, options))

    async def _send(self, client: anthropic.AsyncAnthropic, prompt: Prompt, options: Options) -> Heard:
        stream = await client.messages.create(
            model=self.model,
            max_tokens=self._max_tokens,
            messages=_messages(prompt),
            stream=True,
            # Through extra_body: which of these the client's signature has depends on its version.
            extra_body={**_system(prompt), **options},
        )
        async with stream:
            return await _listen(stream)


def _options(temperature: float | None, thinking_budget: int | None, effort: str | None) -> Options:
    options: dict[str, object] = {}
    if temperature is not None:
        options["temperature"] = temperature
    if thinking_budget is not None:
        options["thinking"] = {"type": "enabled", "budget_tokens": thinking_budget}
    if effort is not None:
        options["output_config"] = {"effort": effort}
    return options


def _system(prompt: Prompt) -> dict[str, object]:
    return {"system": _cached(prompt.system)} if prompt.system else {}  # the API takes no empty text


def _cached(text: str) -> list[TextBlockParam]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def _messages(prompt: Prompt) -> list[MessageParam]:
    """The turns. The first is the fixed prefix of every later round, so it ends in a cache mark, as the system does."""
    messages: list[MessageParam] = []
    for turn in prompt.turns:
        role: Any = turn.role
        messages.append({"role": role, "content": turn.text if messages else _cached(turn.text)})
    return messages


class _Wire(BaseModel):
    # The client builds its objects without checking them; this is the check of what is read here.
    model_config = ConfigDict(from_attributes=True)


class _Usage(_Wire):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(_Wire):
    model: str | None = None
    usage: _Usage | None = None


class _Delta(_Wire):
    text: str | None = None  # thinking comes under another name
    stop_reason: str | None = None


class _Event(_Wire):
    type: str | None
    message: _Message | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


async def _listen(stream: AsyncIterator[object]) -> Heard:
    heard, parts, stop, ended = Heard(), list[str](), "end_turn", False
    async for raw in stream:
        event = _Event.model_validate(raw)
        if event.message is not None:
            heard = _counted(replace(heard, model=event.message.model or ""), event.message.usage)
        if event.delta is not None:
            parts.append(event.delta.text or "")
            stop = event.delta.stop_reason or stop
        heard = _counted(heard, event.usage)
        ended = ended or event.type == "message_stop"
    return replace(heard, text="".join(parts), stop=stop if ended else None)


def _counted(heard: Heard, usage: _Usage | None) -> Heard:
    """The counts so far: the first event brings the input's, later ones correct them and bring the output's."""
    if usage is None:
        return heard
    read = heard.input_tokens
    if usage.input_tokens is not None:
        read = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return replace(
        heard,
        input_tokens=read,
        output_tokens=heard.output_tokens if usage.output_tokens is None else usage.output_tokens,
        cached_tokens=heard.cached_tokens if usage.cache_read_input_tokens is None else usage.cache_read_input_tokens,
    )
