"""Which agent answers, and why.

Owns the names of the agents and the order in which `auto` tries them. Imports a provider's client only when that
provider was chosen, so that a command that asks no model pays for none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.agents import Agent
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.agents.pricing import PriceTable

_NOBODY = "nobody"  # only where a kernel was given
NAMES = ("auto", "anthropic", "openai", "command", "inbox", "recorded")
Announce = Callable[[str], None]


@dataclass(frozen=True)
class AgentOptions:
    """What a person may set about an agent. None leaves it to the provider."""

    model: str | None = None
    temperature: float | None = None
    max_tokens: int = 32_000  # reasoning counts
    reasoning_effort: str | None = None
    timeout_s: float = 900.0  # for one whole reply
    max_tries: int = 6
    wait_s: float = 1800.0  # for a provider that is down or limits the rate, over all tries
    prices: Path | None = None
    inbox_timeout_s: float | None = None  # None: wait for as long as it takes
    command: str | None = None  # of the agent command: a line, or a preset's name
    preset: str | None = None  # a shipped one's name, or a file
    require_sandbox: bool = False  # an agent that runs here is confined with every piece, or not at all


def choose(
    name: str,
    *,
    op_recorded: Path | None,
    single_op: bool,
    options: AgentOptions,
    announce: Announce,
    given: bool = False,
    needs: str = "a batch needs a model",
) -> tuple[Agent, str]:
    """The agent, and one line that says which it is and why.

    op_recorded is the op's folder of recorded replies, if it has one. With `given` a person's kernel comes first: what
    was recorded answers other prompts, so `auto` takes nobody instead. `needs` is said to whoever asks for several ops
    and has no model. Raises UsageError: an unknown name, a key that is missing, or nothing for `auto` to take.
    """
    check_name(name)
    chosen, why = _auto(op_recorded, single_op, given, needs) if name == "auto" else (name, "asked for")
    agent, what = _build(chosen, op_recorded, options, announce)
    return agent, f"agent {chosen}: {what} ({why})"


def check_name(name: str) -> None:
    """Raises UsageError for a name that no agent has."""
    if name in NAMES:
        return
    close = get_close_matches(name.lower(), NAMES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"there is no agent {name!r}.{hint} Allowed are: {', '.join(NAMES)}")


def _auto(op_recorded: Path | None, single_op: bool, given: bool, needs: str) -> tuple[str, str]:
    from orchestrator.agents.keys import ANTHROPIC_KEY, OPENAI_KEY, OPENAI_URL, AnthropicKeys, OpenAIKeys

    anthropic, openai = AnthropicKeys(), OpenAIKeys()
    if anthropic.api_key:
        return "anthropic", f"auto: {ANTHROPIC_KEY} is set"
    if openai.api_key or openai.base_url:
        return "openai", f"auto: {OPENAI_KEY if openai.api_key else OPENAI_URL} is set"
    unset = f"none of {ANTHROPIC_KEY}, {OPENAI_KEY} and {OPENAI_URL} is set"
    if not single_op:
        raise UsageError(f"{unset}; {needs}: set one of them, or name an agent")
    if given:
        return _NOBODY, f"auto: {unset}"
    if op_recorded is None or not op_recorded.is_dir():
        raise UsageError(f"{unset} and this op has no recorded replies; set one of them, or take the agent 'inbox'")
    return "recorded", f"auto: {unset}"


def _build(name: str, op_recorded: Path | None, options: AgentOptions, announce: Announce) -> tuple[Agent, str]:
    if name == "recorded":
        return _recorded(op_recorded)
    if name == _NOBODY:
        return _nobody()
    if name == "inbox":
        return _inbox(options, announce)
    if name == "command":
        return _command(options, announce)
    return (_anthropic if name == "anthropic" else _openai)(options, announce)


def _anthropic(options: AgentOptions, announce: Announce) -> tuple[Agent, str]:
    from orchestrator.agents.anthropic import AnthropicAgent
    from orchestrator.agents.retry import RetryPolicy

    agent = AnthropicAgent(
        model=options.model,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        effort=options.reasoning_effort,
        timeout_s=options.timeout_s,
        policy=RetryPolicy(max_tries=options.max_tries, max_total_s=options.wait_s),
        prices=_prices(options),
        on_wait=lambda seconds, reason: announce(_waiting(seconds, reason)),
    )
    return agent, f"asks {agent.model} at {agent.address}"


def _openai(options: AgentOptions, announce: Announce) -> tuple[Agent, str]:
    from orchestrator.agents.openai import OpenAIAgent
    from orchestrator.agents.retry import RetryPolicy

    agent = OpenAIAgent(
        model=options.model,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        reasoning_effort=options.reasoning_effort,
        timeout_s=options.timeout_s,
        policy=RetryPolicy(max_tries=options.max_tries, max_total_s=options.wait_s),
        prices=_prices(options),
        on_wait=lambda seconds, reason: announce(_waiting(seconds, reason)),
    )
    return agent, f"asks {agent.model} at {agent.address}"


def _inbox(options: AgentOptions, announce: Announce) -> tuple[Agent, str]:
    from orchestrator.agents.inbox import InboxAgent

    agent = InboxAgent(announce, model=options.model or "unknown", timeout_s=options.inbox_timeout_s)
    return agent, "writes each prompt to a file and waits for a reply in another"


def _command(options: AgentOptions, announce: Announce) -> tuple[Agent, str]:
    from orchestrator.agents import presets
    from orchestrator.agents.command import CommandAgent

    preset, where = presets.find(options.command, options.preset)
    agent = CommandAgent(
        preset,
        announce,
        model=options.model,
        timeout_s=options.timeout_s,
        require_sandbox=options.require_sandbox,
    )
    return agent, f"{agent.describe()} ({where})"


def _recorded(folder: Path | None) -> tuple[Agent, str]:
    from orchestrator.agents.recorded import RecordedAgent

    if folder is None:
        raise UsageError("this op has no recorded replies; choose anthropic, openai or inbox")
    agent = RecordedAgent(folder)
    return agent, agent.describe()


def _nobody() -> tuple[Agent, str]:
    from orchestrator.agents.given import Nobody

    return Nobody(), "the kernel that was given is judged, and no model is asked to improve it"


def _prices(options: AgentOptions) -> PriceTable | None:
    from orchestrator.agents.pricing import load

    return load(options.prices) if options.prices is not None else None


def _waiting(seconds: float, reason: str) -> str:
    return f"waiting {seconds:.0f} s: {reason}" if seconds else reason
