"""The agent that asks any server with OpenAI's chat completions: OpenAI itself, vLLM, DeepSeek, a local one.

Owns the shape of the request (which parameters which kind of model takes) and of the stream. What a
failure means and when to ask again is decided in `failures`, `wire` and `retry`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import openai
from pydantic import BaseModel, ConfigDict

from orchestrator.agents import Request
from orchestrator.agents.failures import Options, Provider
from orchestrator.agents.keys import (
    OPENAI_ADDRESS,
    OPENAI_KEY,
    OPENAI_URL,
    OpenAIKeys,
    checked_key,
    checked_url,
    shown_url,
)
from orchestrator.agents.pricing import PriceTable
from orchestrator.agents.retry import OnWait, RetryPolicy
from orchestrator.agents.wire import Heard, Line
from orchestrator.errors import UsageError
from orchestrator.records import Prompt, Reply

DEFAULT_MODEL = "gpt-5.5"

# The client insists on a key; local servers need none, and one that does answers 401, which says what to set.
_PLACEHOLDER_KEY = "no-key"

# o1, o3-mini, gpt-5, gpt-5.5-mini, openai/gpt-6; not gpt-4o, not gpt-5-chat-latest, not gpt-oss.
_REASONING = re.compile(r"(.*/)?(o\d|gpt-([5-9]|\d\d)(?!.*chat)|codex)", re.I)


def reasons(model: str) -> bool:
    """Whether a model, by its name, takes a reasoning model's parameters."""
    return _REASONING.match(model) is not None


class OpenAIAgent:
    """Proposes with a chat model. Reads OPENAI_API_KEY and OPENAI_BASE_URL; with an address, the key may be missing.

    A reasoning model gets max_completion_tokens and no temperature; any other gets max_tokens and, when given, the
    temperature. reasoning_effort is sent when given. What a server refuses is left out and said through on_wait. Token
    counts stay None where the server sends none.

    A reply cut at the token limit is returned as it is, since the judge says what it is worth; one without a word of
    text is an AgentError. Reasoning that a server sends beside the text is not part of the reply.
    """

    name = "openai"

    def __init__(
        self,
        *,
        model: str | None = None,
        max_tokens: int = 32_000,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        timeout_s: float = 900.0,
        policy: RetryPolicy | None = None,
        prices: PriceTable | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        keys = OpenAIKeys()
        if not keys.api_key and not keys.base_url:
            raise UsageError(
                f"neither {OPENAI_KEY} nor {OPENAI_URL} is set; set the key, or the address of a compatible server, "
                "or choose another agent"
            )
        self.model = model or DEFAULT_MODEL
        self._key = checked_key(keys.api_key, OPENAI_KEY) if keys.api_key else None
        self._url = checked_url(keys.base_url or OPENAI_ADDRESS, OPENAI_URL)
        if temperature is not None and reasons(self.model) and on_wait is not None:
            on_wait(0.0, f"{self.model} takes no temperature; asking without it")
        self.address = shown_url(self._url)
        self._timeout_s = timeout_s
        self._line = Line(
            Provider(self.name, self.model, self.address, OPENAI_KEY, OPENAI_URL, self._key),
            openai,
            _options(self.model, max_tokens, temperature, reasoning_effort),
            timeout_s=timeout_s,
            policy=policy or RetryPolicy(),
            prices=prices,
            on_wait=on_wait,
        )

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`."""
        key = self._key.get_secret_value() if self._key else _PLACEHOLDER_KEY
        # A client for each proposal (0.05 s): connections belong to one event loop, and nothing is left open.
        async with openai.AsyncOpenAI(
            api_key=key, base_url=self._url, timeout=self._timeout_s, max_retries=0
        ) as client:
            return await self._line.ask(lambda options: self._send(client, request.prompt, options))

    async def _send(self, client: openai.AsyncOpenAI, prompt: Prompt, options: Options) -> Heard:
        stream = await client.chat.completions.create(
            model=self.model, messages=_messages(prompt), stream=True, extra_body=dict(options)
        )
        async with stream:
            return await _listen(stream)


def _options(model: str, max_tokens: int, temperature: float | None, reasoning_effort: str | None) -> Options:
    options: dict[str, object] = {"stream_options": {"include_usage": True}}
    if reasons(model):
        options["max_completion_tokens"] = max_tokens
    else:
        options["max_tokens"] = max_tokens
        if temperature is not None:
            options["temperature"] = temperature
    if reasoning_effort is not None:
        options["reasoning_effort"] = reasoning_effort
    return options


def _messages(prompt: Prompt) -> list[Any]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return system + [{"role": turn.role, "content": turn.text} for turn in prompt.turns]


class _Wire(BaseModel):
    # The client builds its objects without checking them; this is the check of what is read here.
    model_config = ConfigDict(from_attributes=True)


class _Details(_Wire):
    cached_tokens: int | None = None


class _Usage(_Wire):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Delta(_Wire):
    content: str | None = None  # reasoning comes beside it, as reasoning_content or reasoning
    refusal: str | None = None


class _Choice(_Wire):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(_Wire):
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


async def _listen(stream: AsyncIterator[object]) -> Heard:
    heard, parts, refusal = Heard(), list[str](), list[str]()
    async for raw in stream:
        chunk = _Chunk.model_validate(raw)
        heard = _counted(replace(heard, model=chunk.model or heard.model), chunk.usage)
        for choice in chunk.choices or ():  # the last chunk, with the usage, has none
            heard = replace(heard, stop=choice.finish_reason or heard.stop)
            if choice.delta is not None:
                parts.append(choice.delta.content or "")
                refusal.append(choice.delta.refusal or "")
    return replace(heard, text="".join(parts), refusal="".join(refusal))


def _counted(heard: Heard, usage: _Usage | None) -> Heard:
    if usage is None:  # some servers count in every chunk, most in the last one; the latest count is the whole
        return heard
    details = usage.prompt_tokens_details
    return replace(
        heard,
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cached_tokens=details.cached_tokens if details is not None else None,
    )
