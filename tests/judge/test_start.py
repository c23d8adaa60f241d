"""What fails before any code of the candidate's has run is not the candidate's fault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ZOO

START = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import triton.language
from pathlib import Path
from orchestrator.judge import worker
from orchestrator.judge.candidate import Candidate, Innocent
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import HostArena
from orchestrator.records import Limits


class Promising(HostArena):
    handle = {"kind": "host", "nbytes": 1 << 40}


server = ForkServer.start(worker.main)
arenas = (Promising(1 << 20), Promising(1 << 20))
candidate = Candidate(server, Path(sys.argv[1]), "rmsnorm_triton", "cpu", arenas, Limits())
try:
    candidate.attach()
except Innocent as innocent:
    print(innocent.status, innocent.message)
candidate.end()
server.close()
"""


def test_buffers_that_cannot_be_mapped_are_the_machines_fault(tmp_path: Path) -> None:
    kernel = tmp_path / "rmsnorm_triton.py"
    kernel.write_bytes((ZOO / "kernels" / "good.py").read_bytes())
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"PYTHONPATH": str(ZOO.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", START, str(kernel)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("INFRASTRUCTURE its process could not start: "), done.stdout + done.stderr
