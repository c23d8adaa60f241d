"""One way to ask an HTTP provider, which both API agents use.

Owns the way from a question to a Reply: it is asked again where that helps, and without what the server does not take.
Owns neither what a failure means (`failures`), nor the wait between tries (`retry`), nor what a request or a stream
looks like (`anthropic`, `openai`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

from orchestrator.agents import Wordless
from orchestrator.agents.failures import Options, Provider, Unsupported, one_line, translated
from orchestrator.agents.pricing import PriceTable, cost
from orchestrator.agents.retry import OnWait, RetryPolicy, Transient, Tries
from orchestrator.records import Reply, Usage

_CUT_OFF = ("max_tokens", "length")  # as Anthropic and OpenAI name it
# One meaning under two names: where a server refuses one, it takes the other.
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


@dataclass(frozen=True)
class Heard:
    """What one stream brought. input_tokens counts everything that was read, cached_tokens the part from the cache."""

    text: str = ""
    model: str = ""
    stop: str | None = None  # why the model stopped; None: the stream ended before the reply did
    refusal: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


Send = Callable[[Options], Awaitable[Heard]]


class Line:
    """The way to one provider: asks, asks again where that helps, leaves out what the server does not take.

    What a server refused once is not sent to it again for as long as this lives.
    """

    def __init__(
        self,
        provider: Provider,
        sdk: ModuleType,
        options: Options,
        *,
        timeout_s: float,
        policy: RetryPolicy,
        prices: PriceTable | None,
        on_wait: OnWait | None,
    ) -> None:
        self._provider = provider
        self._sdk = sdk
        self._options = options
        self._timeout_s = timeout_s
        self._policy = policy
        self._prices = prices
        self._on_wait = on_wait

    async def ask(self, send: Send) -> Reply:
        """One proposal: `send` is awaited with the options until it brings a whole reply."""
        tries = Tries(self._provider.name, self._policy, self._on_wait)
        refused: set[str] = set()
        started = time.monotonic()
        while True:
            try:
                heard = await tries.run(partial(self._once, send))
            except Unsupported as err:
                refused.add(err.parameter)
                self._leave_out(err, refused)
                continue
            usage = Usage(
                latency_s=time.monotonic() - started,
                input_tokens=heard.input_tokens,
                output_tokens=heard.output_tokens,
                cached_tokens=heard.cached_tokens,
                requests=tries.requests,
            )
            return self._reply(heard, usage)

    async def _once(self, send: Send) -> Heard:
        options = self._options
        with translated(self._sdk, self._provider, options):
            async with asyncio.timeout(self._timeout_s):
                heard = await send(options)
        if heard.stop is None:
            raise Transient("the stream ended before the reply did")
        return heard

    def _leave_out(self, err: Unsupported, refused: set[str]) -> None:
        if err.parameter not in self._options:
            return  # another proposal, asked at the same time, has met the same refusal
        self._options = without(self._options, err.parameter, refused)
        if self._on_wait is not None:
            self._on_wait(
                0.0, f"{self._provider.base_url} does not take {err.parameter}; asking without it ({err.said})"
            )

    def _reply(self, heard: Heard, usage: Usage) -> Reply:
        model = heard.model or self._provider.model
        if self._prices is not None:
            usage = replace(usage, cost_usd=cost(usage, model, self._prices))
        if not heard.text.strip():
            raise Wordless(_nothing_said(self._provider, heard), Reply("", model, usage))
        return Reply(heard.text, model, usage, truncated=heard.stop in _CUT_OFF)


def _nothing_said(provider: Provider, heard: Heard) -> str:
    who = f"{provider.name} ({provider.model})"
    if heard.refusal or heard.stop in ("refusal", "content_filter"):
        return f"{who} declined to answer: {one_line(heard.refusal) or heard.stop}"
    if heard.stop in _CUT_OFF:
        return f"{who} used up its tokens before the first word of the reply; raise max_tokens or lower the effort"
    return f"{who} sent an empty reply (stopped by {heard.stop})"


def without(options: Options, parameter: str, refused: set[str]) -> Options:
    """The options without a parameter, or with it under its other name if that was not refused too."""
    rest = {name: value for name, value in options.items() if name != parameter}
    other = _OTHER_NAME.get(parameter)
    if other is not None and other not in refused:
        rest[other] = options[parameter]
    return rest
