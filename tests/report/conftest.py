"""Two nights of invented runs in real git, what is gathered of them, and the site: made once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import ops, resources
from orchestrator.ops import Op
from orchestrator.records import Run
from orchestrator.report import gather, site
from orchestrator.report.gather import Gathered
from tests import past_runs

History = tuple[Path, tuple[Run, ...]]


def load(name: str) -> Op:
    """An op that is shipped."""
    return ops.load(name, resources.shipped("configs") / "ops")


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory, rmsnorm: Op) -> History:
    """Two nights of two ops, and their runs: merged, lost, slower, unmeasured."""
    workspaces = tmp_path_factory.mktemp("history")
    return workspaces, past_runs.two_nights(workspaces, rmsnorm, load("softmax"))


@pytest.fixture(scope="session")
def gathered(history: History) -> Gathered:
    """All of it."""
    return gather.gather(history[0], gather.everything, load)


@pytest.fixture(scope="session")
def written(history: History, gathered: Gathered) -> Path:
    """The site of all of it."""
    return site.write(gathered, history[0] / "report").parent
