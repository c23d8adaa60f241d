"""Several processes that would be timed, at once, without a GPU: everything but the timing itself.

`python contenders.py NAME...` starts one fork server each for some of SPECS, gives them inputs, has them called and
their results delivered, ends one, and prints JSON on what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton  # noqa: F401 - in memory before the fork

from orchestrator import ops, resources
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import HostArena
from orchestrator.judge.timing import worker
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.contender import Contender
from orchestrator.records import Limits
from orchestrator.tree import remove_tree

MIB = 1 << 20
SPECS = {
    "kernel": Spec("kernel", "rmsnorm_triton.py", "rmsnorm_triton"),
    "reference": Spec("reference", "ref.py", "rmsnorm_ref"),
    "compiled": Spec("compiled", "ref.py", "rmsnorm_ref", "compiled", "default"),
    "expression": Spec(
        *("expression", "ref.py", "rmsnorm_ref", "expression"),
        call="torch.nn.functional.rms_norm(x, (x.shape[-1],), w, eps)",
    ),
    "not installed": Spec(
        "not installed", "ref.py", "rmsnorm_ref", "expression", call="no_such.f(x)", module="no_such.part"
    ),
}


def main() -> None:
    servers = {name: ForkServer.start(worker.main) for name in sys.argv[1:]}
    folder = Path(tempfile.mkdtemp(prefix="contenders-"))
    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    kernel = Path(__file__).parents[1] / "zoo" / "kernels" / "good.py"
    for name, data in {**op.workspace_files(), "rmsnorm_triton.py": kernel.read_bytes()}.items():
        (folder / name).write_bytes(data)
    print(json.dumps(conversation(servers, folder)))
    for server in servers.values():
        server.close()
    remove_tree(folder)


def conversation(servers: dict[str, ForkServer], folder: Path) -> dict[str, object]:
    contenders = {name: start(servers[name], name, folder) for name in servers}
    missing = refused(contenders.pop("not installed").load)
    for contender in contenders.values():
        contender.load()
    inputs = {
        name: {"x": torch.randn(5, 130) * scale, "w": torch.randn(130)} for scale, name in enumerate(contenders, 1)
    }
    returned = {
        name: contender.call(inputs[name], {"eps": 1e-6}, 120, fill=0xFF, mute=False)
        for name, contender in contenders.items()
    }  # all of them called before any result is fetched: each has buffers of its own
    right = {name: agrees(contenders[name].fetch(returned[name])[0], inputs[name]) for name in contenders}
    pids = {name: contender.pid for name, contender in contenders.items()}
    prepared = refused(lambda: contenders["kernel"].prepare(inputs["kernel"], {}, graph=True, seconds=60))
    contenders["kernel"].end()
    after = contenders["reference"].call(inputs["kernel"], {}, 60, fill=0xFF, mute=False)
    still = agrees(contenders["reference"].fetch(after)[0], inputs["kernel"])
    again = start(servers["kernel"], "kernel", folder, scratch="again")
    again.load()
    for contender in (*contenders.values(), again):
        contender.end()
    return {
        "right": right,
        "missing": missing,
        "processes": len(set(pids.values())),
        "prepared": prepared,
        "others_live_on": still,
        "a_seat_can_be_taken_again": again.pid not in pids.values(),
        "servers": [server.alive for server in servers.values()],
    }


def start(server: ForkServer, name: str, folder: Path, scratch: str = "scratch") -> Contender:
    place = folder / f"{scratch}-{name.replace(' ', '-')}"
    place.mkdir()
    arenas = (HostArena(4 * MIB), HostArena(4 * MIB))
    limits = Limits(memory_mb=2048, total_s=200)
    return Contender(server, SPECS[name], folder, place, "cpu", arenas, limits)


def refused(action: object) -> str:
    try:
        action()  # type: ignore[operator]
    except CandidateFailed as failed:
        return f"{failed.status}: {failed.message}"
    return "done"


def agrees(got: torch.Tensor, inputs: dict[str, torch.Tensor]) -> bool:
    x, w = inputs["x"], inputs["w"]
    want = x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w
    return bool(torch.allclose(got, want, rtol=1e-4, atol=1e-5))


if __name__ == "__main__":
    main()
