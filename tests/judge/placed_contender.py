"""Processes that are timed at several places in memory; prints as JSON at which, by what the process itself was asked.

The processes do nothing: one tells as times the numbers of the places that it was asked for.
"""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path
from typing import Any

import torch

from orchestrator.judge import channel
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import HostArena
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.contender import Contender
from orchestrator.records import Limits
from orchestrator.tree import remove_tree

TENSOR = {"type": "torch.Tensor", "shape": [2], "dtype": "float32", "device": "cpu", "layout": "torch.strided"}
TOLD: dict[str, Any] = {
    "little": 0,
    "much": 1 << 40,
    "no number": "0",
    "less than nothing": -1,
}  # of the memory it took
WANTED, BUFFER_BYTES = 5, 2 << 20  # three times an input and the zones around it


def target(sock: socket.socket, config: dict[str, Any]) -> None:
    while True:
        try:
            message = channel.receive(sock)
        except channel.ChannelClosed:
            return
        if message["do"] == "time":
            answer: dict[str, Any] = {"us": [float(message["place"])] * message["replays"]}
        else:
            answer = {"tuple": False, "results": [TENSOR], "bytes": TOLD[config["spec"]["name"]], "compiled": []}
        channel.send(sock, {"id": message["id"], "event": "done", **answer})


def seen(server: ForkServer, name: str, folder: Path) -> dict[str, Any]:
    arenas = (HostArena(BUFFER_BYTES), HostArena(4096))
    contender = Contender(server, Spec(name, "k.py", "f"), folder, folder / "scratch", "cpu", arenas, Limits(call_s=20))
    x = torch.arange(8.0)
    contender.prepare({"x": x}, {}, graph=True, seconds=20, places=WANTED)
    contender.renew({"x": x})
    blocks = []
    for replays in (1, 2, 3, 1, 2):
        place = contender.time(replays)[0]
        moved = contender.last_replay()[0]["x"]
        blocks.append([place, int((moved[0] - x[0]).item()) % 8])  # moved on by so much: the first value tells
    contender.end()
    return {"places": contender.places, "blocks": blocks, "written": written(arenas[0], x)}


def written(arena: HostArena, x: torch.Tensor) -> int:
    """In how many places of the buffer the input lies."""
    whole = bytes(arena._map)
    return whole.count(x.numpy().tobytes())


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="placed-"))
    (folder / "scratch").mkdir()
    (folder / "k.py").write_text("")
    server = ForkServer.start(target)
    print(json.dumps({name: seen(server, name, folder) for name in TOLD}))
    server.close()
    remove_tree(folder)


if __name__ == "__main__":
    main()
