"""The agent that is a command-line coding agent: it works in a copy of the tree, and what it leaves is its reply.

Owns the work folder, the agent's environment, and what is made of its end. How it is confined and ended is
`launcher`'s, what it is granted its preset's. Whether what it left may stay is not asked here: guard, policy and judge
decide, as over any reply.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from orchestrator import kept
from orchestrator.agents import Request
from orchestrator.agents.launch import Ended, launched
from orchestrator.agents.launcher import Order
from orchestrator.agents.presets import PROMPT_FILE, Preset
from orchestrator.agents.render import render
from orchestrator.errors import AgentError, UsageError
from orchestrator.judge import sandbox, surroundings
from orchestrator.records import Record, Reply, SandboxPiece, Usage, to_json
from orchestrator.text import printable
from orchestrator.tree import lay_out, os_errors, read_ordinary, remove_tree, write_whole

_COMMAND = "command.json"
_LOOKED_THROUGH_BYTES = 2_000_000  # of a file, for a key
_PASSED_ON = ("LANG", "LC_ALL", "TZ", "USER", "LOGNAME", *surroundings.KEPT_VARIABLES)
_FOR_THE_NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)


@dataclass(frozen=True)
class Started(Record):
    """What was started for one attempt, for the record: no key, no path of a home."""

    command: tuple[str, ...]
    keys: tuple[str, ...]  # names
    network: bool
    sandbox: tuple[SandboxPiece, ...]


@dataclass(frozen=True)
class _Place:
    """Where one attempt is made: the tree, and beside it what is taken away afterwards. It may write in both."""

    folder: Path  # the attempt's

    @property
    def tree(self) -> Path:
        """The folder it works in."""
        return self.folder / kept.TREE

    @property
    def work(self) -> Path:
        """What is taken away."""
        return self.folder / "work"

    @property
    def home(self) -> Path:
        """What it takes for its home."""
        return self.work / "home"

    @property
    def scratch(self) -> Path:
        """For temporary files and caches."""
        return self.work / "tmp"

    @property
    def prompt(self) -> Path:
        """The prompt, as a file."""
        return self.work / "prompt.md"

    def prepare(self, request: Request, grants: tuple[str, ...]) -> bytes:
        """All new, also where a run was killed; returns the prompt."""
        prompt = render(request.prompt).encode("utf-8", "replace")
        remove_tree(self.work)
        remove_tree(self.tree)
        lay_out(request.files, self.tree)
        with os_errors(f"make {self.work}"):
            self.home.mkdir(parents=True)
            self.scratch.mkdir()
            self.prompt.write_bytes(prompt)
            for path in grants:
                _show_at_home(path, self.home)
        return prompt

    def sweep_up(self, leaves: tuple[str, ...]) -> dict[str, bytes]:
        """Takes away the files that the agent is known to keep for itself, so that the guard sees what it did; returns
        what is in the others that can be read.
        """
        with os_errors(f"look at what the agent left in {self.tree}"):
            self.tree.chmod(0o755)
            entries = list(self.tree.iterdir())
            for entry in entries:
                if any(fnmatch(entry.name, pattern) for pattern in leaves):
                    remove_tree(entry)
            return {entry.name: read_ordinary(entry, _LOOKED_THROUGH_BYTES) or b"" for entry in entries}


class CommandAgent:
    """Starts the command once an attempt. Raises UsageError where it cannot be started at all."""

    name = "command"

    def __init__(
        self,
        preset: Preset,
        announce: Callable[[str], None],
        *,
        model: str | None = None,
        timeout_s: float = 900.0,
        require_sandbox: bool = False,
    ) -> None:
        self._preset = preset
        self._announce = announce
        self._timeout_s = timeout_s
        self._require_sandbox = require_sandbox
        self._words = preset.words(model)
        self._program = _program(self._words)
        self._keys = _keys(preset)
        self._told: set[str] = set()  # missing pieces that were announced
        self.model = model or f"{Path(self._words[0]).name}, its own choice of model"

    def describe(self) -> str:
        """One line: what is run, and what it gets."""
        keys = ", ".join(self._keys) or "no key"
        network = "the network" if self._preset.network else "no network"
        granted = "".join(f", {path}" for path in self._preset.grants)
        return f"runs {printable(' '.join(self._words))}; it gets {keys}, {network}, its work folder{granted}"

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`."""
        began = time.monotonic()
        sandbox.make_undumpable()  # where Landlock lacks, this keeps our memory and variables from it
        place = _Place(request.folder.resolve())
        try:
            prompt = place.prepare(request, self._preset.grants)
            on_stdin = prompt if self._preset.prompt == "stdin" else None
            ended = await launched(self._order(place), on_stdin, self._timeout_s, partial(self._note, request.folder))
            self._refuse_failure(ended)
            self._refuse_keys(place.sweep_up(self._preset.leaves))
        except BaseException:
            remove_tree(place.tree)
            raise
        finally:
            remove_tree(place.work)
        said = self._without_keys(ended.out) or "(it printed nothing)"
        return Reply(said, self.model, Usage(time.monotonic() - began), in_tree=True)

    def _order(self, place: _Place) -> Order:
        granted = tuple(str(Path(path).expanduser().resolve()) for path in self._preset.grants)
        named = (word for word in self._words[1:] if Path(word).is_absolute() and Path(word).exists())
        reads = (str(Path(path).expanduser()) for path in self._preset.reads)
        return Order(
            argv=(self._program, *(word.replace(PROMPT_FILE, str(place.prompt)) for word in self._words[1:])),
            folder=str(place.tree),
            environment=self._environment(place),
            writable=(str(place.tree), str(place.work), *granted),
            readable=(*_installation(self._program), *reads, *named),
            network=self._preset.network,
            confined_or_not_at_all=self._require_sandbox,
        )

    def _environment(self, place: _Place) -> dict[str, str]:
        """All that it finds in its environment: what tools need, its preset's, its keys."""
        names = (*_PASSED_ON, *(_FOR_THE_NETWORK if self._preset.network else ()))
        scratch = str(place.scratch)
        return {
            **{name: os.environ[name] for name in names if name in os.environ},
            "PATH": f"{sys.prefix}/bin:{os.environ.get('PATH', os.defpath)}",  # `python` is the one with torch
            "HOME": str(place.home),
            "TMPDIR": scratch,
            "TERM": "dumb",
            "NO_COLOR": "1",
            "TRITON_CACHE_DIR": f"{scratch}/triton",
            "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
            "PYTHONDONTWRITEBYTECODE": "1",  # running the test leaves nothing beside it
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "GIT_CEILING_DIRECTORIES": str(place.folder),  # the repository around it is not its own
            **self._preset.environment,
            **self._keys,
        }

    def _note(self, folder: Path, pieces: tuple[SandboxPiece, ...]) -> None:
        """What was started, for the record; what lacks, for the person, once."""
        started = Started(self._words, tuple(self._keys), self._preset.network, pieces)
        write_whole(folder / _COMMAND, self._without_keys(to_json(started)))
        for piece in pieces:
            if not piece.held and piece.name not in self._told:
                self._told.add(piece.name)
                self._announce(f"not confined: {piece.name} ({piece.detail})")

    def _refuse_failure(self, ended: Ended) -> None:
        """Raises AgentError where it did not end well."""
        program = Path(self._program).name
        if ended.stopped:
            raise AgentError(
                f"{program} did not end within {self._timeout_s:g} s, and was ended with all that it had started; "
                "raise agent.timeout_s, or look at its command"
            )
        if code := os.waitstatus_to_exitcode(ended.status):
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            last = next(
                (line for line in reversed(ended.err.splitlines()) if line.strip()), "it wrote nothing to stderr"
            )
            raise AgentError(f"{program} failed ({how}): {printable(self._without_keys(last).strip(), 300)}")

    def _refuse_keys(self, files: dict[str, bytes]) -> None:
        """Raises AgentError where it wrote one of its keys into a file: that would be committed."""
        for name, value in self._keys.items():
            for file, text in files.items():
                if value.encode() in text:
                    raise AgentError(
                        f"the agent wrote the value of {name} into {printable(file)}; nothing of it was kept"
                    )

    def _without_keys(self, text: str) -> str:
        for name, value in self._keys.items():
            text = text.replace(value, f"<{name}>")
        return text


def _keys(preset: Preset) -> dict[str, str]:
    """The variables that hold its keys. Raises UsageError where it has none and none is granted otherwise."""
    found = {name: value for name in preset.keys if (value := os.environ.get(name, "").strip())}
    if preset.keys and not found and not preset.grants:
        raise UsageError(
            f"{preset.command.split()[0]} needs a key: set {' or '.join(preset.keys)}, or grant it its own settings "
            "in a preset (grants:)"
        )
    return found


def _program(words: tuple[str, ...]) -> str:
    """The path of the program. Raises UsageError where there is none."""
    found = shutil.which(words[0]) if words else None
    if found is None:
        raise UsageError(f"there is no program {words[0] if words else ''!r} on PATH: install it, or give its path")
    return str(Path(found).absolute())


def _installation(program: str) -> tuple[str, ...]:
    """What must be readable for a program to start: itself, what a link leads to, and the packages around that."""
    real = Path(program).resolve()
    around = real.parent
    if "node_modules" in real.parts:
        at = real.parts.index("node_modules")
        around = Path(*real.parts[: at + 1])
    elif real.parent.name == "bin" and (real.parent.parent / "pyvenv.cfg").is_file():
        around = real.parent.parent
    return tuple(dict.fromkeys((str(Path(program).parent), str(around))))


def _show_at_home(path: str, home: Path) -> None:
    """A link in the agent's home to what is granted of the person's, at the same place."""
    real = Path(path).expanduser()
    if not real.is_relative_to(Path.home()):
        return
    link = home / real.relative_to(Path.home())
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(real)
