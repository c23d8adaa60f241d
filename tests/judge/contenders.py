"""Several processes that would be timed, at once, without a GPU: everything but the timing itself.

`python contenders.py NAME...` takes the seats of a measurement (a kernel, the baselines without those named, one that
is not installed, a twin), gives each its inputs, has them called and their results delivered, loses one, puts another
into its seat, and prints JSON on what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton  # noqa: F401 - in memory before the fork

from orchestrator import config, measuring, ops, resources
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import HostArena
from orchestrator.judge.timing import worker
from orchestrator.judge.timing.seats import Seats
from orchestrator.judge.ways import Way
from orchestrator.measured import CANDIDATE
from orchestrator.ops import Op
from orchestrator.ops.parts import Call
from orchestrator.records import Status
from orchestrator.tree import lay_out, remove_tree

BUFFER_BYTES = 4 << 20
KERNEL = Path(__file__).parents[1] / "zoo" / "kernels" / "good.py"
BASELINES = {
    "expression": Call(call="torch.nn.functional.rms_norm(x, (x.shape[-1],), w, eps)"),
    "not installed": Call(call="no_such.part.f(x)", module="no_such.part"),
}


def main() -> None:
    servers = [ForkServer.start(worker.main) for _ in range(7)]
    shipped = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    bench = shipped.spec.bench.model_copy(update={"baselines": BASELINES})
    op = Op(shipped.folder, shipped.spec.model_copy(update={"bench": bench}), shipped.reference)
    folder = Path(tempfile.mkdtemp(prefix="contenders-"))
    lay_out({**op.workspace_files(), op.spec.kernel_name: KERNEL.read_bytes()}, folder)
    job = measuring.job_of(op, config.load(overrides=("judge.limits.memory_mb=2048",)), folder, measuring.Rivals())
    said: list[str] = []
    seats = Seats(replace(job, without=tuple(sys.argv[1:])), servers, "cpu", said.append)
    found = conversation(seats)
    seats.end()
    found |= {"said": said, "left": [path.name for path in folder.glob("scratch*")], "absent": seats.absent}
    print(json.dumps(found | {"servers": [server.alive for server in servers]}))
    remove_tree(folder)


def conversation(seats: Seats) -> dict[str, object]:
    seats.take(lambda: (HostArena(BUFFER_BYTES), HostArena(BUFFER_BYTES)))
    names = list(seats.takers)
    inputs = {name: {"x": torch.randn(5, 130) * (1 + n), "w": torch.randn(130)} for n, name in enumerate(names)}
    returned = {
        name: taker.contender.call(inputs[name], {"eps": 1e-6}, 120, fill=0xFF, way=Way.PLAIN)
        for name, taker in seats.takers.items()
    }  # all of them called before any result is fetched: each has buffers of its own
    right = {
        name: agrees(taker.contender.fetch(returned[name])[0], inputs[name]) for name, taker in seats.takers.items()
    }
    prepared = refused(lambda: seats.takers[CANDIDATE].contender.prepare(inputs[CANDIDATE], {}, graph=True, seconds=60))
    pids = seats.pids()
    seats.again(CANDIDATE, graph=False, detail="no graph")
    twin_of = seats.twin_of
    seats.lost(twin_of, CandidateFailed(Status.RUNTIME_ERROR, "it failed"))
    seats.keep_a_twin()
    after = {name: works(seats, name) for name in seats.takers}
    return {
        "names": names,
        "right": right,
        "prepared": prepared,
        "pids": len(set(pids)),
        "candidate": {"first": next(iter(seats.takers)) == CANDIDATE, "graph": seats.takers[CANDIDATE].graph},
        "twins": [twin_of, seats.twin_of],
        "after": after,
    }


def works(seats: Seats, name: str) -> bool:
    inputs = {"x": torch.randn(3, 7), "w": torch.randn(7)}
    contender = seats.takers[name].contender
    returned = contender.call(inputs, {"eps": 1e-6}, 120, fill=0xFF, way=Way.PLAIN)
    return agrees(contender.fetch(returned)[0], inputs)


def refused(action: Callable[[], object]) -> str:
    try:
        action()
    except CandidateFailed as failed:
        return f"{failed.status}: {failed.message}"
    return "done"


def agrees(got: torch.Tensor, inputs: dict[str, torch.Tensor]) -> bool:
    x, w = inputs["x"], inputs["w"]
    want = x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w
    return bool(torch.allclose(got, want, rtol=1e-4, atol=1e-5))


if __name__ == "__main__":
    main()
