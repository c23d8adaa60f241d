"""Who would write the kernels: keys, servers, a command-line agent. No key is shown and none is sent."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from email.message import Message
from typing import IO
from urllib.parse import urlsplit

from pydantic import SecretStr

from orchestrator.agents import keys, presets
from orchestrator.agents.command import CommandAgent
from orchestrator.doctor.condition import LIMIT_S, SAID_CHARS, Asked, Condition, State
from orchestrator.errors import UsageError
from orchestrator.text import printable


def anthropic_key(asked: Asked) -> Condition:
    """Whether Anthropic's key is there. Never which."""
    return _key(asked, "anthropic", keys.ANTHROPIC_KEY, keys.AnthropicKeys().api_key, "")


def openai_key(asked: Asked) -> Condition:
    """Whether OpenAI's key is there, or the address of a server that may need none. Never which."""
    provider = keys.OpenAIKeys()
    return _key(asked, "openai", keys.OPENAI_KEY, provider.api_key, keys.OPENAI_URL if provider.base_url else "")


def _key(asked: Asked, agent: str, variable: str, key: SecretStr | None, instead: str) -> Condition:
    name, chosen = f"{agent} key", asked.settings.agent.name == agent
    if not key:
        if instead:
            return Condition(
                name, State.UNNEEDED, f"{variable} is not set; {instead} is, and its server may need no key"
            )
        if chosen:
            said = f"{variable} is not set, and the agent {agent} was asked for"
            return Condition(
                name, State.LACKING, said, f"export {variable}=..., or choose another agent", essential=True
            )
        said = f"{variable} is not set; the agents recorded and inbox need no key"
        return Condition(name, State.UNNEEDED, said, f"to have a model of {agent}'s asked: export {variable}=...")
    try:
        keys.checked_key(key, variable)
    except UsageError as error:
        return Condition(name, State.LACKING, str(error), f"export {variable}=... without spaces", essential=chosen)
    return Condition(name, State.OK, f"{variable} is set (whether the server takes it, its first answer will say)")


def command(asked: Asked) -> Condition:
    """Whether the command-line agent that is asked for could be started, with a key of its own."""
    settings = asked.settings.agent
    if settings.name != "command":
        said = "no command-line agent was asked for"
        return Condition("command", State.UNNEEDED, said, "to have one work: --command claude, or another")
    try:
        preset, where = presets.find(settings.command, settings.preset)
        said = f"{CommandAgent(preset, print, model=settings.model).describe()} ({where})"
    except UsageError as error:
        return Condition("command", State.LACKING, str(error), "", essential=True)
    return Condition("command", State.OK, printable(said, SAID_CHARS))


def anthropic_server(asked: Asked) -> Condition:
    """Whether Anthropic's server, or the one set in its place, answers."""
    provider = keys.AnthropicKeys()
    wanted = bool(provider.api_key)
    return _server(asked, "anthropic", keys.ANTHROPIC_URL, provider.base_url or keys.ANTHROPIC_ADDRESS, wanted)


def openai_server(asked: Asked) -> Condition:
    """Whether OpenAI's server, or the one set in its place, answers."""
    provider = keys.OpenAIKeys()
    wanted = bool(provider.api_key or provider.base_url)
    return _server(asked, "openai", keys.OPENAI_URL, provider.base_url or keys.OPENAI_ADDRESS, wanted)


def _server(asked: Asked, agent: str, variable: str, url: str, wanted: bool) -> Condition:
    name, chosen = f"{agent} server", asked.settings.agent.name == agent
    if not wanted:
        return Condition(name, State.UNNEEDED, "nothing is set that would have it asked")
    address = _address(url)
    if address is None:
        said = f"{variable} is no http:// or https:// address"  # not shown: it may be a key in the wrong variable
        return Condition(name, State.LACKING, said, f"export {variable}=https://...", essential=chosen)
    problem = _unreachable(address)
    if problem:
        advice = f"start it, or look at the network, the proxy and {variable}; the agents recorded and inbox need none"
        return Condition(name, State.LACKING, f"{address} does not answer: {problem}", advice, essential=chosen)
    return Condition(name, State.OK, f"{address} answers (asked without a key)")


def _address(url: str) -> str | None:
    """Scheme, host and port alone: a path or a query can hold a key, a name and a password stand before the host."""
    try:
        parts = urlsplit(keys.checked_url(url, ""))
        _ = parts.port  # ValueError when it is no number
    except (UsageError, ValueError):
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _unreachable(address: str) -> str:
    """Why no HTTP answer came; "" when one did, whatever its status. Goes through the proxy that is set, if one is."""
    opener = urllib.request.build_opener(_NoRedirect())
    try:
        opener.open(urllib.request.Request(address, method="HEAD"), timeout=LIMIT_S - 1).close()
    except urllib.error.HTTPError as answered:
        answered.close()
    except (OSError, ValueError, http.client.HTTPException) as error:  # no way there, no address, no HTTP
        return printable(str(getattr(error, "reason", "") or error).strip() or type(error).__name__)
    return ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """An answer that points elsewhere is an answer."""
