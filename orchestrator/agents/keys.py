"""The providers' keys and addresses, read from the environment and from nowhere else.

Owns the names of the variables and the checks that a key or an address can work at all. Knows no client: whoever only
wants to see which provider is configured imports this and no SDK. A key stays a SecretStr until a client takes it.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from orchestrator.errors import UsageError

ANTHROPIC_KEY, ANTHROPIC_URL = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
OPENAI_KEY, OPENAI_URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"
ANTHROPIC_ADDRESS, OPENAI_ADDRESS = "https://api.anthropic.com", "https://api.openai.com/v1"  # where no address is set


class _Keys(BaseSettings):
    # A value pasted with its line end is the commonest broken key.
    model_config = SettingsConfigDict(str_strip_whitespace=True, hide_input_in_errors=True)

    api_key: SecretStr | None = None  # an empty one counts as not set; so does an empty address
    base_url: str | None = None


class AnthropicKeys(_Keys):
    """ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL."""

    model_config = SettingsConfigDict(env_prefix="ANTHROPIC_")


class OpenAIKeys(_Keys):
    """OPENAI_API_KEY and OPENAI_BASE_URL."""

    model_config = SettingsConfigDict(env_prefix="OPENAI_")


def checked_key(key: SecretStr, variable: str) -> SecretStr:
    """The key, if a header can carry it. Raises UsageError that does not show it."""
    value = key.get_secret_value()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(
            f"{variable} holds something that is no key (spaces, control or non-ASCII characters); set it anew"
        )
    return key


def checked_url(url: str, variable: str) -> str:
    """The address, if it is one. Raises UsageError that shows no name and password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # it may quote what stands before the host
        usable = False
    if not usable:
        raise UsageError(f"{variable} is {shown_url(url)!r}, which is no http:// or https:// address")
    return url


def shown_url(url: str) -> str:
    """What was given as an address, without a name and password in it, for messages.

    Read as text, since what is no address may hold a password too, and a password a slash: all before the last @ goes.
    """
    return re.sub(r"^([a-z][a-z0-9+.-]*://)?.*@", r"\1", url, flags=re.IGNORECASE | re.DOTALL)
