"""Which agent is taken in which environment, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.agents import Agent, Request, keys
from orchestrator.agents.choose import AgentOptions, choose
from orchestrator.errors import UsageError

from .loopback import Server, anthropic_events, error, sse

A = {"ANTHROPIC_API_KEY": "sk-a"}
K = {"OPENAI_API_KEY": "sk-o"}
U = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "correct-1.md").write_text("reply")
    entry = f"- {{file: correct-1.md, model: claude-x, date: 2026-11-20, prompt_sha256: {'a' * 64}}}"
    (folder / "recorded.yaml").write_text(entry)
    return folder


def _choose(name: str, folder: Path | None, *, single: bool = True, **options: object) -> tuple[Agent, str]:
    chosen = AgentOptions(**options)  # type: ignore[arg-type]
    return choose(name, op_recorded=folder, single_op=single, options=chosen, announce=lambda _: None)


@pytest.mark.parametrize(
    ("name", "environment", "expected", "said"),
    [
        ("auto", A, "anthropic", "auto: ANTHROPIC_API_KEY is set"),
        ("auto", A | K | U, "anthropic", "auto: ANTHROPIC_API_KEY is set"),
        ("auto", K, "openai", "auto: OPENAI_API_KEY is set"),
        ("auto", U, "openai", "auto: OPENAI_BASE_URL is set"),
        ("auto", {"ANTHROPIC_API_KEY": ""} | U, "openai", "http://127.0.0.1:9/v1"),
        ("auto", {}, "recorded", "none of ANTHROPIC_API_KEY, OPENAI_API_KEY and OPENAI_BASE_URL is set"),
        ("auto", {}, "recorded", "replays recorded replies of claude-x (2026-11-20)"),
        ("auto", {}, "recorded", "calls no model"),
        ("openai", A | K, "openai", "asked for"),
        ("anthropic", A | K, "anthropic", "asked for"),
        ("inbox", {}, "inbox", "asked for"),
        ("recorded", A, "recorded", "calls no model"),
    ],
)
def test_a_single_op(
    recorded: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    environment: dict[str, str],
    expected: str,
    said: str,
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    agent, line = _choose(name, recorded)
    assert agent.name == expected
    assert line.startswith(f"agent {expected}: ")
    assert said in line
    assert "\n" not in line
    assert "sk-" not in line


@pytest.mark.parametrize(("environment", "expected"), [(A, "anthropic"), (K, "openai"), (U, "openai")])
def test_a_batch_with_a_model(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert _choose("auto", recorded, single=False)[0].name == expected


def test_a_batch_without_a_model(recorded: Path) -> None:
    with pytest.raises(UsageError, match="a batch needs a model"):
        _choose("auto", recorded, single=False)


@pytest.mark.parametrize("name", ["auto", "recorded"])
def test_an_op_without_recorded_replies(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no recorded replies"):
        _choose(name, None)
    with pytest.raises(UsageError):
        _choose(name, tmp_path / "absent")


@pytest.mark.parametrize(("name", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")])
def test_a_named_provider_without_its_key(recorded: Path, name: str, variable: str) -> None:
    with pytest.raises(UsageError, match=f"{variable}.* set"):
        _choose(name, recorded)


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"])
@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("user:pa55@host/v1", "'host/v1'"),
        ("user:pa55/@host/v1", "'host/v1'"),
        ("user:pa55@wo@host/v1", "'host/v1'"),
        ("ftp://user:pa55@host/v1", "'ftp://host/v1'"),
        ("http://[user:pa55@host/v1", "'http://host/v1'"),
        ("http://user:pa55@h\N{ACCOUNT OF}st/v1", "'http://h\N{ACCOUNT OF}st/v1'"),
    ],
)
def test_an_address_that_is_none_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, variable: str, address: str, shown: str
) -> None:
    agent = variable.partition("_")[0]
    monkeypatch.setenv(f"{agent}_API_KEY", "sk-a")
    monkeypatch.setenv(variable, address)
    with pytest.raises(UsageError, match=f"{variable} is .*no http:// or https:// address") as caught:
        _choose(agent.lower(), None)
    assert shown in str(caught.value) and "pa55" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://user:pa55@host:8/v1", "http://user:pa/55@host:8/v1"])
def test_the_address_that_messages_name_has_no_password(address: str) -> None:
    assert keys.shown_url(address) == "http://host:8/v1"
    assert keys.shown_url("https://host/v1") == "https://host/v1"


@pytest.mark.parametrize(("name", "hint"), [("antropic", "'anthropic'"), ("OpenAI", "'openai'"), ("zzz", None)])
def test_an_unknown_name(name: str, hint: str | None) -> None:
    with pytest.raises(UsageError, match="Allowed are: auto, anthropic, openai, command, inbox, recorded") as caught:
        _choose(name, None)
    assert repr(name) in str(caught.value)
    assert (f"Did you mean {hint}?" in str(caught.value)) if hint else ("Did you mean" not in str(caught.value))


async def test_the_options_arrive(
    server: Server, request_: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-a")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices: {claude-test: {input: 1, output: 1}}")
    options = AgentOptions(
        model="claude-y", temperature=0.5, max_tokens=99, reasoning_effort="low", max_tries=2, prices=prices
    )
    said: list[str] = []
    agent, line = choose("auto", op_recorded=None, single_op=False, options=options, announce=said.append)
    assert "claude-y" in line
    server.answers = [error(529, "overloaded", headers={"retry-after": "0"}), sse(*anthropic_events())]
    reply = await agent.propose(request_)
    body = server.asked[1].body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("claude-y", 0.5, 99)
    assert body["output_config"] == {"effort": "low"}
    assert reply.usage.cost_usd == pytest.approx(17e-6)
    assert len(said) == 1
    assert "overloaded" in said[0]


async def test_the_inbox_gets_its_options(request_: Request) -> None:
    said: list[str] = []
    options = AgentOptions(model="someone", inbox_timeout_s=0.05)
    agent, _ = choose("inbox", op_recorded=None, single_op=True, options=options, announce=said.append)
    with pytest.raises(Exception, match=r"after 0\.05 s"):
        await agent.propose(request_)
    assert len(said) == 1


def test_a_missing_price_table_is_said_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-a")
    with pytest.raises(UsageError, match="cannot be read"):
        _choose("anthropic", None, prices=tmp_path / "absent.yaml")


def test_choosing_without_a_provider_imports_no_client(recorded: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\n"
        "import orchestrator.agents.choose as c\n"
        "light = [m for m in ('openai', 'anthropic', 'pydantic', 'tenacity', 'yaml') if m in sys.modules]\n"
        f"folder, options = Path({str(recorded)!r}), c.AgentOptions()\n"
        "c.choose('auto', op_recorded=folder, single_op=True, options=options, announce=print)\n"
        "print(light, [m for m in ('openai', 'anthropic') if m in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[] []"
