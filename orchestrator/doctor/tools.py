"""What a run is confined and recorded by: git, and the pieces of the judge's sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from orchestrator.doctor.condition import Asked, Condition, State, silent
from orchestrator.doctor.processes import Died, facts_of, first_error, run
from orchestrator.records import SandboxPiece
from orchestrator.text import printable


def git(_: Asked) -> Condition:
    """A git that makes a repository as a workspace does."""
    advice = "install git 2.29 or newer"
    if shutil.which("git") is None:
        return Condition("git", State.LACKING, "there is no git on PATH", advice, essential=True)
    with tempfile.TemporaryDirectory() as folder:
        command = ["git", "init", "--quiet", "--bare", "--initial-branch=main", "--object-format=sha1", "--template="]
        try:
            version = run(["git", "--version"], os.environ).stdout.strip()
            made = run([*command, f"{folder}/probe.git"], os.environ)
        except subprocess.TimeoutExpired:
            return silent("git", "try `git --version`")
        except OSError as error:
            return Condition("git", State.LACKING, f"git cannot be run: {error.strerror}", advice, essential=True)
    if made.returncode:
        said = f"{printable(version)} makes no repository: {first_error(made.stderr)}"
        return Condition("git", State.LACKING, said, advice, essential=True)
    return Condition("git", State.OK, f"{printable(version)} makes repositories")


def sandbox(asked: Asked) -> Condition:
    """The pieces of the confinement, as a throwaway process of the judge's gets them."""
    required = asked.settings.judge.require_sandbox
    try:
        pieces = facts_of("sandbox", "gpu" if asked.gpu else "cpu")
    except subprocess.TimeoutExpired:
        return silent("sandbox", "ask again; a run says which pieces it got")
    except Died as died:
        return Condition("sandbox", State.LACKING, f"it could not be tried: {died}", "report it", essential=True)
    return confinement([SandboxPiece(**piece) for piece in pieces], required=required)


def confinement(pieces: Sequence[SandboxPiece], *, required: bool) -> Condition:
    """What the pieces come to."""
    missing = [f"{piece.name} ({piece.detail})" for piece in pieces if not piece.held]
    if not missing:
        return Condition("sandbox", State.OK, f"all {len(pieces)} pieces of the confinement hold")
    said = f"{len(pieces) - len(missing)} of {len(pieces)} pieces hold; missing: {'; '.join(missing)}"
    advice = "judge only kernels you trust here, or use Linux 6.12 or newer with Landlock, seccomp and namespaces"
    return Condition("sandbox", State.LACKING, printable(said, 1500), advice, essential=required)
