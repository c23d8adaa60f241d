"""The champions of a folder of workspaces: which there are, what was once measured of each, and one that falls.

Owns what is read from git and the run folders about a champion. Judges and times nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import kept, measuring
from orchestrator.measured import Measured
from orchestrator.nights.story import BEGUN, CHECKED, FOLDER, Checked, Standing
from orchestrator.ops import Op
from orchestrator.recorder import MEASUREMENTS, RUN
from orchestrator.records import Run, Status, from_json
from orchestrator.workspace import Champion, Workspace


@dataclass(frozen=True)
class Held:
    """A champion with its op as it is now."""

    op: Op
    champion: Champion
    standing: Standing


def found(
    workspaces: Path, names: Sequence[str], load: Callable[[str], Op]
) -> tuple[tuple[Held, ...], tuple[str, ...]]:
    """Every champion, and the names of repositories whose op there is no more."""
    repositories = sorted(path.name.removesuffix(".git") for path in workspaces.glob("[!.]*.git"))
    known = [load(name) for name in repositories if name in names]
    held = [one for op in known if (one := _held(Workspace.open(workspaces, op.name), op)) is not None]
    return tuple(held), tuple(name for name in repositories if name not in names)


def of(standing: Standing, workspaces: Path, op: Op) -> Held:
    """A champion that a night began with, though main may have moved since."""
    space, name = Workspace.open(workspaces, op.name), op.spec.kernel_name
    kernel = space.read_at(name, standing.commit) or b""
    return Held(op, Champion(standing.commit, name, kernel, standing.run), standing)


def demote(checked: Checked, held: Held, workspaces: Path, night: str) -> str:
    """Take a champion that fell off main; the commit, '' where main holds it no more."""
    subject = f"demoted by the night of {night}: {checked.status}: {checked.message}"
    return Workspace.open(workspaces, checked.op).demote(
        held.champion, subject, {"Status": checked.status, "Night": night}
    )


def record(held: Held, workspaces: Path) -> tuple[Measured | None, str]:
    """What was measured of a champion when it won, or the first time that a night timed it; and where that is."""
    for measured, where in _measurements(held.standing, workspaces):
        if measured.status is Status.PASSED:
            return measured, where
    return None, ""


def _held(space: Workspace, op: Op) -> Held | None:
    champion = space.champion(op.spec.kernel_name)
    if champion is None:
        return None
    digest = hashlib.sha256(champion.kernel).hexdigest()
    return Held(op, champion, Standing(op.name, champion.commit, champion.run, digest))


def _measurements(standing: Standing, workspaces: Path) -> Iterator[tuple[Measured, str]]:
    """Those of its best kernel in the champion's run, the newest first; then those of nights, the oldest first."""
    folder = workspaces / "runs" / standing.run
    if standing.run and (folder / RUN).is_file():
        best = from_json(Run, (folder / RUN).read_bytes()).best
        for place in sorted((folder / MEASUREMENTS).glob("*"), reverse=True):
            if (place / measuring.MEASURED).is_file() and kept.against(place).attempt == best:
                yield measuring.kept(place), f"run {standing.run}"
    for begun in sorted((workspaces / FOLDER).glob(f"*/{BEGUN}"), key=lambda file: file.parent.name):
        place = begun.parent / "champions" / standing.op
        if (place / measuring.MEASURED).is_file() and _is_of(place / CHECKED, standing):
            yield measuring.kept(place), f"the night of {begun.parent.name}"


def _is_of(checked: Path, standing: Standing) -> bool:
    """Whether a night came to an end with this very kernel."""
    return checked.is_file() and from_json(Checked, checked.read_bytes()).standing.sha256 == standing.sha256
