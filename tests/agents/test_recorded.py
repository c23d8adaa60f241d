"""The recorded agent with real folders: replay, its end, and folders that cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.agents import Request
from orchestrator.agents.recorded import RecordedAgent, RepliesExhausted
from orchestrator.errors import UsageError

HASH = "a" * 64
RAW = "Sure.\r\n\n```python\nx = 'ü'\n```  \n\n"


def _entry(file: str, model: str = "claude-x", date: str = "2026-11-20") -> str:
    return f"- {{file: {file}, model: {model}, date: {date}, prompt_sha256: {HASH}}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    where = tmp_path / "recorded"
    where.mkdir()
    (where / "correct-1.md").write_bytes(RAW.encode())
    (where / "correct-2.md").write_text("second")
    (where / "recorded.yaml").write_text(_entry("correct-1.md") + _entry("correct-2.md"))
    return where


async def test_replay_by_stage_and_round(folder: Path, request_: Request) -> None:
    agent = RecordedAgent(folder)
    first = await agent.propose(replace(request_, round=1))
    assert first.text.encode() == RAW.encode()  # unedited, line ends too
    assert first.model == "claude-x"
    assert first.usage.requests == 0
    assert first.usage.output_tokens is None
    assert (await agent.propose(request_)).text == "second"


@pytest.mark.parametrize(("stage", "round_"), [("correct", 3), ("launch", 1)])
async def test_the_end_of_the_replies(folder: Path, request_: Request, stage: str, round_: int) -> None:
    with pytest.raises(RepliesExhausted) as caught:
        await RecordedAgent(folder).propose(replace(request_, stage=stage, round=round_))
    message = str(caught.value)
    assert "\n" not in message
    for part in (stage, str(round_), "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "inbox"):
        assert part in message
    assert f"{folder.name}/{stage}-{round_}.md" in message and str(folder) not in message, "it is pasted into records"
    assert caught.value.exit_code == 2


def test_it_says_that_it_replays(folder: Path) -> None:
    assert RecordedAgent(folder).describe() == (
        f"replays recorded replies of claude-x (2026-11-20) from {folder} and calls no model"
    )
    both = _entry("correct-1.md") + _entry("correct-2.md", "gpt-y", "2026-10-01")
    (folder / "recorded.yaml").write_text(both)
    assert "claude-x, gpt-y (2026-10-01 to 2026-11-20)" in RecordedAgent(folder).describe()


async def test_a_reply_of_unknown_origin(folder: Path, request_: Request) -> None:
    (folder / "recorded.yaml").write_text(_entry("correct-1.md"))
    with pytest.raises(UsageError, match=r"correct-2\.md is not in recorded\.yaml"):
        await RecordedAgent(folder).propose(request_)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (_entry("gone.md"), r"gone\.md"),
        (_entry("correct-1.md").replace("date:", "day:"), "0"),
        (_entry("correct-1.md").replace(HASH, "abc"), "prompt_sha256"),
        ("- [", "not YAML"),
        ("", "its top"),
        ("[]", "no reply"),
        (None, "cannot be read"),
    ],
    ids=["no such file", "unknown key", "no hash", "no YAML", "empty", "no entry", "no index"],
)
def test_a_folder_that_cannot_be(folder: Path, index: str | None, message: str) -> None:
    (folder / "recorded.yaml").unlink()
    if index is not None:
        (folder / "recorded.yaml").write_text(index)
    with pytest.raises(UsageError, match=message) as caught:
        RecordedAgent(folder)
    assert "\n" not in str(caught.value)
