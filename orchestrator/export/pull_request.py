"""An exported kernel as a branch of a repository of the person's: one commit on what is checked out there.

Written through git's plumbing with an index of its own: the person's checkout, index and branches stay as they are,
dirty or not, and no hook runs. Nothing is pushed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator import resources
from orchestrator.errors import UsageError, WorkspaceError
from orchestrator.export.package import Package
from orchestrator.export.source import Source
from orchestrator.text import printable

_LIMIT_S = 120


@dataclass(frozen=True)
class Branch:
    """What was prepared."""

    repository: Path
    name: str
    commit: str
    body: str  # of the pull request, as Markdown


def placed(package: Package, folder: str) -> dict[str, bytes]:
    """The files as they lie in a repository: in the folder, but for the CI job, which belongs at the top."""
    return {
        path if path.startswith(".github/") else str(PurePosixPath(folder) / path): data
        for path, data in package.files.items()
    }


def prepare(package: Package, source: Source, repository: Path, folder: str, branch: str | None = None) -> Branch:
    """Makes the branch. Raises UsageError for what is no repository, and for a branch or a file that is there."""
    top = _top(repository)
    name = branch or f"kernel/{source.op.name}-{package.certificate.files[source.op.spec.kernel_name][:8]}"
    if _git(top, "check-ref-format", "--branch", name, check=False) == "":
        raise UsageError(f"{printable(name)} is no name for a branch; give another with --branch")
    if _git(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}", check=False):
        raise UsageError(f"{top} has a branch {name} already; give another name with --branch")
    head = _git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False)
    if not head:
        raise UsageError(f"{top} has no commit yet, so there is nothing to propose a change to")
    files = placed(package, folder)
    _refuse_what_is_there(top, head, files)
    commit = _commit(top, head, files, _message(package, source))
    _git(top, "update-ref", f"refs/heads/{name}", commit, "0" * 40)
    body = _body(package, source, folder)
    return Branch(top, name, commit, body)


def _top(repository: Path) -> Path:
    if not repository.is_dir():
        raise UsageError(f"--repo {printable(str(repository))}: there is no such folder")
    top = _git(repository, "rev-parse", "--show-toplevel", check=False)
    if not top:
        raise UsageError(f"--repo {printable(str(repository))} is no checkout of a git repository")
    return Path(top)


def _refuse_what_is_there(top: Path, head: str, files: Mapping[str, bytes]) -> None:
    """A proposal adds; what the person has is not replaced."""
    there = _git(top, "ls-tree", "-r", "--name-only", "-z", head, "--", *files).split("\0")
    if taken := [path for path in there if path]:
        raise UsageError(f"{top} has {printable(taken[0])} already; name another folder with --into")


def _commit(top: Path, head: str, files: Mapping[str, bytes], message: str) -> str:
    with tempfile.TemporaryDirectory(prefix="export-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        _git(top, "read-tree", head, extra=index)
        lines = "".join(
            f"100644 {_git(top, 'hash-object', '-w', '--no-filters', '--stdin', stdin=data)}\t{path}\0"
            for path, data in files.items()
        )
        _git(top, "update-index", "-z", "--index-info", stdin=lines.encode(), extra=index)
        tree = _git(top, "write-tree", extra=index)
        return _git(top, "commit-tree", "-p", head, "-F", "-", tree, stdin=message.encode())


def _message(package: Package, source: Source) -> str:
    found = package.certificate
    return (
        f"Add {source.op.name}, a Triton kernel\n\n{printable(found.reason, 500)}\n\n"
        f"{found.judged.passed} of {found.judged.cases} cases passed on {printable(found.judged.device)}.\n\n"
        f"Kernel-Run: {found.run}\nKernel-Sha256: {found.files[found.kernel]}\n"
    )


def _body(package: Package, source: Source, folder: str) -> str:
    template = resources.environment(resources.templates() / "export").get_template("PULL_REQUEST.md.j2")
    where = next(path for path in placed(package, folder) if path.endswith("/__init__.py"))
    return template.render(op=source.op.spec, folder=str(PurePosixPath(where).parent), decision=package.decision)


def _git(
    folder: Path, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None, check: bool = True
) -> str:
    """What a git command printed, without its line end; with the person's name, without hooks and git's variables."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | dict(extra or {})
    command = ["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", *arguments]
    try:
        ended = subprocess.run(command, input=stdin, capture_output=True, env=own, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkspaceError(f"git {arguments[0]} could not run in {folder}: {error}") from error
    if ended.returncode and check:
        said = printable(ended.stderr.decode(errors="replace").strip(), 300)
        raise WorkspaceError(f"git {arguments[0]} failed in {folder}: {said}")
    return "" if ended.returncode else ended.stdout.decode(errors="surrogateescape").removesuffix("\n")
