"""Processes that answer a question about times with what is no answer; prints as JSON what the judge made of each."""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path
from typing import Any

import torch

from orchestrator.judge import channel
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import HostArena
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.contender import Contender
from orchestrator.records import Limits
from orchestrator.tree import remove_tree

REPLAYS = 3
ANSWERS: dict[str, Any] = {
    "honest": {"us": [3.5, 4.5, 5.5]},
    "none": {},
    "text": {"us": ["3.0", "3.0", "3.0"]},
    "too few": {"us": [3.0]},
    "nothing": {"us": [0.0, 0.0, 0.0]},
    "longer than was waited": {"us": [1e308, 1e308, 1e308]},
    "negative": {"us": [3.0, -1.0, 3.0]},
    "infinite": {"us": [3.0, 1e999, 3.0]},
    "not a number": {"us": [3.0, float("nan"), 3.0]},
    "huge": {"us": [3.0] * 10_000_000},
    "other number": {"us": [3.0, 3.0, 3.0], "id": 77},
}
PREPARED = "prepared, "  # those that lie when they are asked to prepare
TENSOR = {"type": "torch.Tensor", "shape": [2], "dtype": "float32", "device": "cpu", "layout": "torch.strided"}
COMPILED: dict[str, Any] = {  # what is said of compiled kernels
    "no list": "none",
    "no record": ["{}"],
    "unknown fields": ['{"kernel": "k", "target": "sm_90", "warps": 4, "stages": 3, "speed": "high"}'],
}
CAPTURED: dict[str, Any] = {"event": "captured", "tuple": False, "results": [TENSOR], "bytes": 0}
ANSWERS |= {f"{PREPARED}{name}": {**CAPTURED, "compiled": told} for name, told in COMPILED.items()}
DELIVERED = "delivered, "  # those whose result is no tensor's: seen when it is looked at
RESULTS: dict[str, dict[str, Any]] = {
    "infinite": {"shape": [1e999]},
    "less than nothing": {"shape": [-1]},
    "more than numbers hold": {"shape": [1 << 63]},
    "nothing of too much": {"shape": [0, 1 << 62, 1 << 62]},
    "no dtype": {"dtype": "nn"},
}
LACKING = {name: {key: value for key, value in TENSOR.items() if key != name} for name in TENSOR if name != "type"}
ANSWERS |= {f"{PREPARED}without {name}": {**CAPTURED, "results": [told]} for name, told in LACKING.items()}
ANSWERS |= {f"{DELIVERED}{name}": ANSWERS["honest"] for name in RESULTS}


def target(sock: socket.socket, config: dict[str, Any]) -> None:
    name = config["spec"]["name"]
    prepared = ANSWERS[name] if name.startswith(PREPARED) else CAPTURED
    if name.startswith(DELIVERED):
        prepared = {**CAPTURED, "results": [TENSOR | RESULTS[name.removeprefix(DELIVERED)]]}
    for answer in (prepared, ANSWERS[name], {}):
        message = channel.receive(sock)
        channel.send(sock, {"id": message["id"], **answer})
    channel.receive(sock)


def verdict(server: ForkServer, name: str, folder: Path) -> str:
    arenas = (HostArena(1 << 20), HostArena(4096))
    contender = Contender(server, Spec(name, "k.py", "f"), folder, folder / "scratch", "cpu", arenas, Limits(call_s=20))
    try:
        contender.prepare({"x": torch.zeros(2)}, {}, graph=True, seconds=20)
        latency, block = contender.time(REPLAYS)
        contender.last_replay()
    except CandidateFailed as failed:
        return f"{failed.status}"
    finally:
        contender.end()
    return f"{latency} us, {block.replays} replays, {'waited' if block.wall_us > 0 else 'no wait'}"


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="lying-"))
    (folder / "scratch").mkdir()
    (folder / "k.py").write_text("")
    server = ForkServer.start(target)
    print(json.dumps({name: verdict(server, name, folder) for name in ANSWERS}))
    server.close()
    remove_tree(folder)


if __name__ == "__main__":
    main()
