"""What is kept of a reply is the reply: a run that goes on must not tell the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import kept
from orchestrator.records import Reply, Usage

REPLIES = (
    Reply("plain\n", "model", Usage(1.5, 60, 40, 10, 3, 0.25)),
    Reply("line ends\r\nand \r and \udc80, half a character", "model", Usage(1.5)),
    Reply("cut o", "model", Usage(0.0, requests=0), truncated=True),
)


@pytest.mark.parametrize("reply", REPLIES, ids=("counted", "odd", "cut off"))
def test_a_kept_reply_is_the_reply(reply: Reply, tmp_path: Path) -> None:
    assert not kept.has_reply(tmp_path)
    kept.keep(reply, tmp_path)
    assert kept.has_reply(tmp_path) and kept.reply(tmp_path) == reply


def test_a_reply_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / kept.REPLY).with_name(f".{kept.REPLY}.partial").write_text("half of")
    (tmp_path / kept.USAGE).write_text("{}")
    assert not kept.has_reply(tmp_path)
