"""What an attempt's folder keeps of the model's part: the prompt as it was sent, the reply as it came, what it cost.

Owns the names and forms of these files, for the recorder that writes them, for a run that is taken up again and must
not ask twice, and for the ledger. Also which folders are an op's runs, and what a measurement's says of its rivals.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from orchestrator.records import Record, Reply, Usage, from_json, to_json
from orchestrator.tree import os_errors, write_whole

PROMPT, REPLY, USAGE, AGAINST = "prompt.md", "reply.md", "usage.json", "against.json"
TREE = "tree"  # what an agent left that worked in the tree; there until its attempt is recorded


def folder(run: Path, number: int, stage: str, round_: int) -> Path:
    """The folder of an attempt in its run's."""
    return run / "attempts" / f"{number:02}-{stage}-{round_}"


def number(folder: Path) -> int:
    """Of the attempt of that folder."""
    return int(folder.name.split("-")[0])


def runs_of(op: str, runs: Path) -> list[Path]:
    """The folders of an op's runs, the oldest first: an id begins with its op and the time. Ten thousand others cost
    one look at the folder that they lie in.
    """
    begins = f"{op}-"
    with os.scandir(runs) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(begins)]
    return [runs / name for name in sorted(names) if name[len(begins) : len(begins) + 1].isdigit()]


@dataclass(frozen=True)
class Call(Usage):
    """A model call that was answered, without the words."""

    model: str = ""
    truncated: bool = False
    agent: str = ""
    in_tree: bool = False


@dataclass(frozen=True)
class Against(Record):
    """Which attempt a measurement is of, and where main stood when its champion was looked up."""

    attempt: int
    main: str  # commit


def call_of(reply: Reply) -> Call:
    """A reply without its words."""
    return Call(
        **asdict(reply.usage),
        model=reply.model,
        truncated=reply.truncated,
        agent=reply.agent,
        in_tree=reply.in_tree,
    )


def keep(reply: Reply, folder: Path) -> None:
    """The reply itself is last to be written: where it is, the rest is too."""
    write_whole(folder / USAGE, to_json(call_of(reply)))
    write_whole(folder / REPLY, reply.text)


def keep_wordless(reply: Reply, folder: Path) -> None:
    """What was paid for nothing."""
    write_whole(folder / USAGE, to_json(call_of(reply)))


def wordless(folder: Path) -> Reply | None:
    """What `keep_wordless` left there, if it did."""
    return None if has_reply(folder) or not is_paid(folder) else _reply("", call(folder))


def is_paid(folder: Path) -> bool:
    """Whether the call of that folder came to an end that has its cost, with a reply or without."""
    return (folder / USAGE).is_file()


def has_reply(folder: Path) -> bool:
    """Whether the attempt of that folder was answered."""
    return (folder / REPLY).is_file()


def reply(folder: Path) -> Reply:
    """The reply that was kept."""
    answered = call(folder)
    with os_errors(f"read {folder / REPLY}"):
        return _reply((folder / REPLY).read_bytes().decode("utf-8", "surrogatepass"), answered)


def _reply(text: str, answered: Call) -> Reply:
    spent = {field.name: getattr(answered, field.name) for field in fields(Usage)}
    return Reply(text, answered.model, Usage(**spent), answered.truncated, answered.agent, answered.in_tree)


def call(folder: Path) -> Call:
    """Who answered, and what it cost."""
    with os_errors(f"read {folder / USAGE}"):
        return from_json(Call, (folder / USAGE).read_bytes())


def prompt_sha256(folder: Path) -> str:
    """The hash of the prompt as it was sent."""
    with os_errors(f"read {folder / PROMPT}"):
        return hashlib.sha256((folder / PROMPT).read_bytes()).hexdigest()


def keep_against(against: Against, folder: Path) -> None:
    """Before a measurement begins."""
    write_whole(folder / AGAINST, to_json(against))


def against(folder: Path) -> Against:
    """What `keep_against` left there."""
    with os_errors(f"read {folder / AGAINST}"):
        return from_json(Against, (folder / AGAINST).read_bytes())
