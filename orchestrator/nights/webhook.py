"""Telling of a night: one POST to an address that only the environment knows.

Owns the two forms of the message and its delivery. The address is a secret (whoever has it can post there): it is in no
record, no log and no error.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential

from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.nights.story import Night

VARIABLE = "ORCHESTRATOR_WEBHOOK_URL"
Form = Literal["none", "json", "slack"]
_TIMEOUT_S = 20
_TRIES = 3


class WebhookKey(BaseSettings):
    """The address, read from the environment and from nowhere else."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", str_strip_whitespace=True, hide_input_in_errors=True)

    webhook_url: SecretStr | None = None


class NotDelivered(InfrastructureError):
    """The other side cannot be reached, or refuses."""


def address() -> str:
    """Where to post. Raises UsageError where the environment does not say; it does not show what is there."""
    secret = WebhookKey().webhook_url
    url = secret.get_secret_value() if secret is not None else ""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or not url.isprintable():
        raise UsageError(f"night.webhook is set, but {VARIABLE} holds no http:// or https:// address; export one")
    return url


def message(night: Night, text: str, form: Form) -> dict[str, object]:
    """What is posted: the whole night, or a text in Slack's form. `text` is the night in a few lines."""
    if form == "slack":
        return {"text": text}
    return {
        "night": night.begun.id,
        "exit_code": night.exit_code,
        "text": text,
        "champions": len(night.checked),
        "regressions": [{"op": one.op, "what": one.what, "text": one.text} for one in night.regressions],
        "generated": [{"op": one.op, "run": one.run, "decision": one.decision} for one in night.generated],
    }


def send(url: str, body: dict[str, object]) -> None:
    """Post it, a few times if the other side is busy. Raises NotDelivered."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "orchestrator"}
    )
    try:
        _post(request)
    except urllib.error.HTTPError as error:
        raise NotDelivered(f"the webhook answered HTTP {error.code}; see {VARIABLE}") from None
    except _Busy as error:
        raise NotDelivered(f"the webhook answered {error.reason}, {_TRIES} times; see {VARIABLE}") from None
    except (OSError, HTTPException, ValueError) as error:
        why = type(getattr(error, "reason", error)).__name__
        raise NotDelivered(f"the webhook could not be reached ({why}); see {VARIABLE}") from None


class _Busy(urllib.error.URLError):
    """Worth another try."""


@retry(
    retry=retry_if_exception_type(_Busy),
    stop=stop_after_attempt(_TRIES),
    wait=wait_exponential(multiplier=0.5, max=10),
    reraise=True,
)
def _post(request: urllib.request.Request) -> None:
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S) as answer:
            answer.read(1000)
    except urllib.error.HTTPError as error:
        if error.code == 429 or error.code >= 500:
            raise _Busy(f"HTTP {error.code}") from None
        raise


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Urllib would go on with a GET, and what was to be told would be lost."""

    def redirect_request(self, *args: object, **options: object) -> None:
        return None
