"""One op's history: a bare git repository that no candidate and no agent can reach.

Owns `<root>/<op>.git`: `main` with the baseline files and, once there is one, the champion and its DECISION.md; a
branch `run/<id>` a run; a commit an attempt, rejected ones too. Written as objects (`objects`) and refs, without work
tree, index, filters or hooks, and without the person's own git configuration or environment (`git`). Refs move only
under the op's lock and only from the value that was read, so runs side by side are safe.

Does not judge what it stores, and keeps nothing that is not history (prompts, replies, reports: the run folder).
Every refusal of git or the file system becomes a WorkspaceError here.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from filelock import FileLock, Timeout

from orchestrator import git
from orchestrator.errors import WorkspaceError
from orchestrator.objects import Objects
from orchestrator.text import printable
from orchestrator.tree import lay_out, os_errors, remove_tree

DECISION = "DECISION.md"  # beside the champion on main, and beside the best kernel on a run's branch
LOCK_SECONDS = 120  # commits take milliseconds; longer means a stuck process
_ORPHAN_SECONDS = 2

_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*")
_BRANCH = re.compile(rf"main|run/{_NAME.pattern}")
_COMMIT = re.compile(rb"[0-9a-f]{40}")
_NOTHING = "0" * 40  # the old value of a ref that must not exist yet
_MARK = "orchestrator.op"  # in the repository's own config: it is ours, and for this op
_FILES = "Baseline-Files"  # trailer of a baseline commit: which names are the baseline
_RUN = "Run"  # trailer of a merge: the run whose kernel it brought
_DEMOTED = "Demoted"  # trailer of a demotion: the commit that had brought the champion


@contextmanager
def attempt_folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A plain temporary folder that holds the files, removed afterwards whatever became of it."""
    with os_errors("make a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix="attempt-"))
    try:
        lay_out(files, folder)
        yield folder
    finally:
        remove_tree(folder)


@dataclass(frozen=True)
class Champion:
    """The kernel on main, and what brought it there."""

    commit: str  # on main
    name: str
    kernel: bytes
    run: str  # '' where it was put there by hand


@dataclass(frozen=True)
class _Step:
    """A commit of a line of them."""

    commit: str
    parents: tuple[str, ...]
    files: tuple[str, ...]  # the baseline's names, of a baseline commit


@dataclass(frozen=True)
class _Demotion:
    """A commit that took a champion off main."""

    commit: str
    when: datetime
    of: str  # the commit that had brought it


@dataclass(frozen=True)
class Workspace:
    """The repository of one op. `open` it; the constructor checks nothing."""

    root: Path
    op: str

    @property
    def path(self) -> Path:
        """The bare repository."""
        return self.root / f"{self.op}.git"

    @classmethod
    def open(cls, root: Path, op: str) -> Workspace:
        """The op's workspace below root, made if there is none. Refuses a repository that is not ours."""
        _check_name(op, "op")
        workspace = cls(root.absolute(), op)
        with os_errors(f"make {root}"):
            workspace.root.mkdir(parents=True, exist_ok=True)
        with workspace.locked():
            if workspace.path.exists() or workspace.path.is_symlink():
                workspace._refuse_foreign()
            else:
                workspace._create()
        return workspace

    def start_run(self, files: Mapping[str, bytes], run_id: str) -> RunBranch:
        """Commits the baseline to main if it is not there, and starts the branch `run/<run_id>` at it.

        A changed baseline is a new commit; a champion and its DECISION.md stay on main beside it.
        """
        if not files:
            raise WorkspaceError(f"a run of {self.op} needs a baseline, and no file was given")
        for name in files:
            _check_name(name, "file")
        _check_name(run_id, "run")
        entries = {name: self._objects.blob(data) for name, data in files.items()}
        with self.locked():
            if self.tip(f"run/{run_id}"):
                raise WorkspaceError(f"there is already a run {run_id} in {self.path}; choose another run id")
            baseline = self._baseline(entries)
            self._move(f"run/{run_id}", baseline, _NOTHING)
        return RunBranch(self, f"run/{run_id}", baseline, MappingProxyType(dict(files)))

    def open_run(self, run_id: str) -> RunBranch:
        """The branch of a run started earlier."""
        name = f"run/{run_id}"
        tip = self.tip(name)
        baseline, names = self._last_baseline(tip) if tip else ("", ())
        if not baseline:
            raise WorkspaceError(f"there is no run {printable(run_id)} in {self.path}")
        return RunBranch(self, name, baseline, MappingProxyType(self._read_all(baseline, names)))

    def read(self, name: str, branch: str = "main") -> bytes | None:
        """A file at the tip of a branch (the champion on main), or None."""
        tip = self.tip(branch)
        return self.read_at(name, tip) if tip else None

    def read_at(self, name: str, commit: str) -> bytes | None:
        """A file as it was at a commit, or None."""
        blob = self._entries(commit).get(name)
        return self._objects.read(blob) if blob else None

    def champion(self, kernel_name: str) -> Champion | None:
        """The kernel on main, or None."""
        if not (main := self.tip("main")) or (kernel := self.read_at(kernel_name, main)) is None:
            return None
        layout = f"--format=%H %(trailers:key={_RUN},valueonly,separator=%x20)"
        last = self._git("log", "-1", "--first-parent", layout, main, "--", kernel_name).decode()
        commit, _, run = last.strip().partition(" ")
        return Champion(commit, kernel_name, kernel, run)

    def is_baseline(self, files: Mapping[str, bytes]) -> bool:
        """Whether these files are the baseline that main stands on."""
        main = self.tip("main")
        baseline, names = self._last_baseline(main) if main else ("", ())
        return bool(baseline) and self._read_all(baseline, names) == dict(files)

    def demote(self, champion: Champion, subject: str, trailers: Mapping[str, str]) -> str:
        """Takes the champion and its decision off main, by a commit that says why; history keeps them. Returns it.

        One that was demoted already stays so; '' where it was replaced by another.
        """
        with self.locked():
            now, main = self.champion(champion.name), self.tip("main")
            if now is None or now.commit != champion.commit:
                return next((one.commit for one in self._demotions() if one.of == champion.commit), "")
            gone = (champion.name, DECISION)
            rest = {name: blob for name, blob in self._entries(main).items() if name not in gone}
            commit = self._commit(rest, _message(subject, {_DEMOTED: champion.commit, **trailers}), main)
            self._move("main", commit, main)
        return commit

    def last_demotion(self) -> datetime | None:
        """When a champion was demoted last, if ever one was."""
        return next((one.when for one in self._demotions()), None)

    def _demotions(self) -> Iterator[_Demotion]:
        """The newest first."""
        layout = f"--format=%H %ct %(trailers:key={_DEMOTED},valueonly,separator=%x20)"
        lines = (
            self._git("log", "--first-parent", layout, "main", "--").decode().splitlines() if self.tip("main") else ()
        )
        for words in map(str.split, lines):
            if len(words) == 3:
                yield _Demotion(words[0], datetime.fromtimestamp(int(words[1]), UTC), words[2])

    def tip(self, branch: str) -> str:
        """The commit a branch stands at, '' if there is no such branch."""
        ref = f"refs/heads/{branch}"
        if _BRANCH.fullmatch(branch) and ".." not in branch and (commit := self._own_file(ref)) is not None:
            return commit
        lines = self._git("for-each-ref", "--format=%(objectname) %(refname)", ref).decode().splitlines()
        return next((line.split()[0] for line in lines if line.split()[1] == ref), "")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the op's lock, which every move of a ref needs. Not reentrant."""
        # A lock object each: threads of one process exclude each other like processes do.
        lock = FileLock(self.root / f"{self.op}.lock", timeout=LOCK_SECONDS)
        try:
            lock.acquire()
        except Timeout as error:
            message = f"another process has held {lock.lock_file} for {LOCK_SECONDS} s; see whether one hangs"
            raise WorkspaceError(message) from error
        except OSError as error:
            raise WorkspaceError(f"cannot lock {lock.lock_file}: {error}; check the folder's rights") from error
        try:
            yield
        finally:
            lock.release()

    def _create(self) -> None:
        """A marked empty repository, complete before it has its name: a crash leaves nothing half made."""
        with os_errors(f"make {self.path}"):
            new = Path(tempfile.mkdtemp(prefix=f".{self.op}-", dir=self.root))
            git.git(new, "init", "--quiet", "--bare", "--initial-branch=main", "--object-format=sha1", "--template=")
            section, _, name = _MARK.partition(".")
            with (new / "config").open("a", encoding="utf-8") as config:
                config.write(f"[{section}]\n\t{name} = {self.op}\n")
            new.chmod(0o755)
            new.rename(self.path)

    def _refuse_foreign(self) -> None:
        advice = "choose another --workspaces folder, or move it away"
        config = self.path / "config"
        if self.path.is_symlink() or not config.is_file() or not (self.path / "HEAD").is_file():
            raise WorkspaceError(f"{self.path} is no repository of ours; {advice}")
        settings = self._git("config", "--file", str(config), "--list", "-z").decode("utf-8", "replace").split("\0")
        if f"{_MARK}\n{self.op}" not in settings or "core.bare\ntrue" not in settings:
            raise WorkspaceError(f"{self.path} is not marked as the workspace of {self.op}; {advice}")
        main = self.tip("main")
        if main and not self._last_baseline(main)[0]:
            raise WorkspaceError(f"main in {self.path} has a history that is not ours; {advice}")

    def _baseline(self, entries: Mapping[str, str]) -> str:
        """The commit on main whose baseline these entries are; a new one if they changed. Needs the lock."""
        main = self.tip("main")
        baseline, names = self._last_baseline(main) if main else ("", ())
        old = self._entries(main) if main else {}
        before = {name: old[name] for name in names}
        if baseline and before == entries:
            return baseline
        kept = {name: blob for name, blob in old.items() if name not in names}
        changed = sorted(name for name in {*before, *entries} if before.get(name) != entries.get(name))
        subject = f"baseline{' changed' if baseline else ''}: {', '.join(changed)}"
        trailers = {"Op": self.op, _FILES: " ".join(sorted(entries))}
        commit = self._commit({**kept, **entries}, _message(subject, trailers), *([main] if main else []))
        self._move("main", commit, main or _NOTHING)
        return commit

    def _last_baseline(self, commit: str) -> tuple[str, tuple[str, ...]]:
        """The newest baseline commit at or before one, and its baseline's names; '' and () if there is none."""
        return next(((step.commit, step.files) for step in self._line(commit) if step.files), ("", ()))

    def _line(self, commit: str) -> list[_Step]:
        """How main, or a run's branch, came to a commit: the newest step first."""
        layout = f"--format=%H|%P|%(trailers:key={_FILES},valueonly,separator=%x20)"
        lines = self._git("log", "--first-parent", layout, commit, "--").decode().splitlines()
        return [
            _Step(found, tuple(parents.split()), tuple(names.split()))
            for found, parents, names in (line.split("|", 2) for line in lines)
        ]

    def _git(self, *args: str) -> bytes:
        return git.git(self.path, *args)

    def _own_file(self, ref: str) -> str | None:
        """What the file of a ref says, '' where there is none; None where git must be asked: it has packed its refs."""
        with os_errors(f"read {self.path / ref}"):
            try:
                text = (self.path / ref).read_bytes().strip()
            except (FileNotFoundError, NotADirectoryError):
                elsewhere = (self.path / "packed-refs").exists() or (self.path / "reftable").exists()
                return None if elsewhere else ""
        return text.decode() if _COMMIT.fullmatch(text) else None

    @property
    def _objects(self) -> Objects:
        return Objects(self.path, self._git)

    def _entries(self, commit: str) -> dict[str, str]:
        return self._objects.entries(commit)

    def _read_all(self, commit: str, names: tuple[str, ...]) -> dict[str, bytes]:
        entries = self._entries(commit)
        return {name: self._objects.read(entries[name]) for name in names}

    def _commit(self, entries: Mapping[str, str], message: str, *parents: str) -> str:
        return self._objects.commit(self._objects.tree(entries), parents, f"{git.NAME} <{git.EMAIL}>", message)

    def _move(self, branch: str, to: str, old: str) -> None:
        """Needs the lock. Whoever holds git's own on the branch is then a git whose process was killed: it ends in a
        moment, or was killed with it and has left the file."""
        stale = self.path / "refs" / "heads" / f"{branch}.lock"
        patience = time.monotonic() + _ORPHAN_SECONDS
        while stale.exists() and time.monotonic() < patience:
            time.sleep(0.05)
        with os_errors(f"remove {stale}"):
            stale.unlink(missing_ok=True)
        self._git("update-ref", "--no-deref", f"refs/heads/{branch}", to, old)


@dataclass(frozen=True)
class RunBranch:
    """The branch of one run: the baseline it began at, and a commit an attempt."""

    workspace: Workspace
    name: str
    baseline: str  # commit
    files: Mapping[str, bytes]  # the baseline's

    def history(self) -> tuple[tuple[str, str], ...]:
        """What was committed since the baseline, oldest first: each commit and its subject."""
        if (tip := self.workspace.tip(self.name)) == self.baseline:
            return ()
        span = f"{self.baseline}..{tip}"
        lines = self.workspace._git("log", "--reverse", "--format=%H %s", span, "--").decode().splitlines()
        return tuple((commit, subject) for commit, _, subject in (line.partition(" ") for line in lines))

    def merge_commit(self) -> str:
        """The commit on main by which this branch, as it is now, was merged; '' if it was not."""
        tip = self.workspace.tip(self.name)
        return next((step.commit for step in self.workspace._line("main") if step.parents[1:] == (tip,)), "")

    def lay_out(self, into: Path) -> None:
        """Writes the baseline's files into an empty plain folder, for an attempt."""
        lay_out(self.files, into)

    def export(self, into: Path, kernel_name: str, kernel: bytes) -> None:
        """Writes the baseline as git has it, plus the one kernel, into an empty plain folder, for the judge."""
        self._check_free(kernel_name)
        files = self.workspace._read_all(self.baseline, tuple(self.files))
        lay_out({**files, kernel_name: kernel}, into)

    def commit_attempt(self, kernel_name: str, kernel: bytes | None, subject: str, trailers: Mapping[str, str]) -> str:
        """Commits one attempt, passed or not; None leaves the files as they were. Returns the commit."""
        files = {} if kernel is None else {kernel_name: kernel}
        return self._commit(files, _message(subject, trailers))

    def commit_file(self, name: str, data: bytes, message: str) -> str:
        """Commits one more file (DECISION.md). Returns the commit."""
        return self._commit({name: data}, message)

    def merge(self, subject: str, expected_main: str | None = None) -> str:
        """Merges what the run changed into main, as a commit with two parents. Returns it.

        Refuses if the baseline on main is no longer the one this run was judged by, if main has moved from
        `expected_main` (the one whose champion the run was measured against), and if there is nothing to merge.
        """
        space = self.workspace
        with space.locked():
            main, tip = space.tip("main"), space.tip(self.name)
            line = space._line(main)
            if next((step.commit for step in line if step.files), "") != self.baseline:
                raise WorkspaceError(f"the baseline of {space.op} changed during {self.name}; judge the kernel again")
            if expected_main is not None and main != expected_main:
                raise WorkspaceError(
                    f"another kernel of {space.op} was merged since {self.name} was measured; measure it again: "
                    f"python -m orchestrator measure {self.name.removeprefix('run/')}"
                )
            if tip in {commit for step in line for commit in (step.commit, *step.parents)}:
                raise WorkspaceError(f"{self.name} has nothing that is not on main already; look at `git log --all`")
            # Only what the run changed: another run may have put a newer champion beside it meanwhile.
            before, after = space._entries(self.baseline), space._entries(tip)
            changed = {name: blob for name, blob in after.items() if before.get(name) != blob}
            message = _message(subject.strip(), {_RUN: self.name.removeprefix("run/")})
            commit = space._commit({**space._entries(main), **changed}, message, main, tip)
            space._move("main", commit, main)
        return commit

    def _commit(self, files: Mapping[str, bytes], message: str) -> str:
        for name in files:
            self._check_free(name)
        space = self.workspace
        blobs = {name: space._objects.blob(data) for name, data in files.items()}
        with space.locked():
            tip = space.tip(self.name)
            if not tip:
                raise WorkspaceError(f"the branch {self.name} is gone from {space.path}; start a new run")
            commit = space._commit({**space._entries(tip), **blobs}, message, tip)
            space._move(self.name, commit, tip)
        return commit

    def _check_free(self, name: str) -> None:
        _check_name(name, "file")
        if name in self.files:
            raise WorkspaceError(f"{name} is part of the baseline and cannot be replaced; give it another name")


def _check_name(name: str, kind: str) -> None:
    """Names become paths and refs: letters, digits, and a little punctuation that is harmless in both."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")) or name.lower() == ".git":
        raise WorkspaceError(f"{printable(repr(name))} is no {kind} name; use letters, digits, '_', '-' and '.'")


def _message(subject: str, trailers: Mapping[str, str]) -> str:
    """A commit message: one line, then git trailers, each on one line whatever its value holds."""
    lines = [f"{key}: {printable(value, 500)}".rstrip() for key, value in trailers.items()]
    return "\n".join([printable(subject, 600), "", *lines]) + "\n"
