"""What the failures of an HTTP provider mean.

Owns the boundary to the vendors' clients: every failure is classified here, once, as worth another try (Transient), as
a parameter to leave out (Unsupported), as a configuration that cannot work (UsageError) or as a refusal (AgentError).
What is then done about it is decided in `wire` and `retry`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

from pydantic import SecretStr, ValidationError

from orchestrator.agents.retry import Transient, retry_after_s
from orchestrator.errors import AgentError, UsageError

Options = Mapping[str, object]  # parameters of a request that a server may refuse

# How servers say that they do not know or take a parameter. A bad *value* ("too large", "supported values are")
# is not among them: leaving that out would quietly do something else than was asked.
_REFUSES_PARAMETER = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|forbidden|deprecated", re.I
)
_REFUSES_VALUE = re.compile(r"supported values|valid values|too (large|small|high|low)|at most|at least", re.I)

# An error inside a stream that began with 200 has only its type to go by; those that no retry can mend.
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
}


class Unsupported(Exception):
    """The server does not take a parameter. Never leaves the agents."""

    def __init__(self, parameter: str, said: str) -> None:
        super().__init__(f"{parameter}: {said}")
        self.parameter = parameter
        self.said = said


@dataclass(frozen=True)
class Provider:
    """Who is asked, in the words a person needs to mend a configuration."""

    name: str
    model: str
    base_url: str  # as shown: without a password
    key_variable: str
    url_variable: str
    key: SecretStr | None  # only to keep it out of messages


@dataclass(frozen=True)
class Refusal:
    """An HTTP answer that is no reply."""

    status: int
    message: str
    body: object
    headers: Mapping[str, str]


@contextmanager
def translated(sdk: ModuleType, provider: Provider, options: Options) -> Iterator[None]:
    """The one place where a client library's failures become ours.

    Both vendors generate their clients from one template, so the error classes carry the same names. `from None`:
    the client's errors hold the request, and with it the key.
    """
    try:
        yield
    except TimeoutError:  # before OSError, of which it is one
        raise Transient("no whole reply in time") from None
    except sdk.APIStatusError as err:
        refusal = Refusal(err.status_code, err.message, err.body, err.response.headers)
        raise meaning(refusal, provider, options) from None
    except sdk.APITimeoutError:
        raise Transient("the connection timed out") from None
    except sdk.APIConnectionError as err:
        raise Transient(f"no connection to {provider.base_url}: {_innermost(err)}") from None
    except sdk.APIError as err:  # an error event inside a stream
        raise Transient(f"the stream broke off: {one_line(err.message, provider.key)}") from None
    except _broken_connections() as err:
        raise Transient(f"the connection broke: {one_line(str(err)) or type(err).__name__}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, ValidationError) as err:
        raise Transient(f"a malformed answer: {one_line(str(err), provider.key)}") from None


def _broken_connections() -> tuple[type[Exception], ...]:
    # Older clients are built on httpx, newer ones on httpx2, and some let its errors through from inside a stream.
    # Whichever is in use has been imported by the client.
    loaded = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return (OSError, *(module.RequestError for module in loaded))


def _innermost(err: BaseException) -> str:
    while (cause := err.__cause__ or err.__context__) is not None:
        err = cause
    return one_line(str(err)) or type(err).__name__


def meaning(refusal: Refusal, provider: Provider, options: Options) -> Exception:
    """What a refusal is for us: Transient, Unsupported, UsageError or AgentError."""
    said = one_line(_words(refusal), provider.key)
    status = _status(refusal)
    if status in (401, 403):
        return UsageError(_key_refused(status, said, provider))
    if status == 404:
        return UsageError(
            f"{provider.name} knows no model {provider.model!r} at {provider.base_url} (HTTP 404: {said}); "
            f"check the model's name and {provider.url_variable}"
        )
    if status in (400, 422) and (parameter := refused_parameter(refusal, options)):
        return Unsupported(parameter, said)
    if _worth_another_try(status, refusal):
        return Transient(f"HTTP {refusal.status}: {said}", retry_after_s(refusal.headers))
    return AgentError(f"{provider.name} refused the request (HTTP {status}): {said}")


def _status(refusal: Refusal) -> int:
    if refusal.status >= 400:
        return refusal.status
    return _STATUS_OF_TYPE.get(str(_field(refusal.body, "type")), 500)


def _worth_another_try(status: int, refusal: Refusal) -> bool:
    if _field(refusal.body, "code") == "insufficient_quota":
        return False  # a 429 that no waiting mends
    return status in (408, 409, 429) or status >= 500


def _key_refused(status: int, said: str, provider: Provider) -> str:
    if provider.key is None:
        return f"{provider.base_url} wants a key (HTTP {status}); set {provider.key_variable}"
    # A 401 often repeats part of the key, so its words are not passed on.
    why = f": {said}" if status == 403 else ""
    return (
        f"{provider.base_url} refused the key in {provider.key_variable} (HTTP {status}{why}); set one that it accepts"
    )


def refused_parameter(refusal: Refusal, options: Options) -> str | None:
    """The option that the server says it does not take, if it says so."""
    text = f"{refusal.message} {json.dumps(refusal.body, default=str)}"
    if _REFUSES_VALUE.search(text) or not _REFUSES_PARAMETER.search(text):
        return None
    named = str(_field(refusal.body, "param")).partition(".")[0]
    if named in options:
        return named
    places = {name: match.start() for name in options if (match := re.search(rf"\b{name}\b", text))}
    return min(places, key=places.__getitem__, default=None)


def _words(refusal: Refusal) -> str:
    for field in ("message", "detail"):
        if value := _field(refusal.body, field):
            return str(value)
    page = refusal.body  # no JSON: a proxy's page, as one client leaves it
    return page if isinstance(page, str) and page else refusal.message


def _field(body: object, name: str) -> object:
    """A field of an error body: under "error" as the vendors write it, or bare as many servers do."""
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    return inner.get(name) if isinstance(inner, dict) else body.get(name)


def one_line(text: str, key: SecretStr | None = None, limit: int = 300) -> str:
    """A provider's words on one line, capped, and without the key."""
    if key is not None:
        text = text.replace(key.get_secret_value(), "[key]")
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
