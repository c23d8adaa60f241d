"""The process that runs a person's code: questions over a socket, one answer each, until the other end closes.

`python -m orchestrator.judge.convert.probe FD`. What the code prints goes where this process's output goes and is
evidence of nothing. Whoever asks sets the time limit and ends the process.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from orchestrator.judge import channel
from orchestrator.judge.convert import composing, examine, gradients, trials
from orchestrator.judge.convert.subject import Asked, Problem, said
from orchestrator.probed import Examined
from orchestrator.records import to_json

LIMIT_BYTES = 16 << 20


class Probe:
    """Answers; keeps what was examined."""

    def __init__(self) -> None:
        self._kept: examine.Kept | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One question's answer."""
        kind = asked.pop("ask")
        if kind == "examine":
            return {"examined": to_json(self._examine(**asked), indent=None)}
        if kind == "trials":
            return {"outcomes": trials.run(**asked)}
        if kind == "counted":
            return {"counts": trials.counts(**asked)}
        if kind == "composed":
            return composing.composed(**asked)
        assert self._kept is not None
        if kind == "built":
            return {"shapes": trials.built(self._kept, **asked)}
        if kind == "differentiated":
            return {"found": to_json(gradients.differentiated(self._kept, **asked), indent=None)}
        if kind == "gradients":
            return {"differs": gradients.differs(self._kept, **asked)}
        return {"agrees": trials.agrees(self._kept, **asked)}

    def _examine(
        self,
        path: str,
        first: str,
        method: str,
        cut: str,
        init: Any = None,
        calls: list[Mapping[str, Any]] | None = None,
    ) -> Examined:
        try:
            found, self._kept = examine.examine(Asked(Path(path), first, method, cut, init), calls)
        except Problem as problem:
            return Examined(problem=str(problem))
        return found


def serve(handle: int) -> None:
    """Answer until the other end is closed."""
    torch.set_num_threads(1)
    probe = Probe()
    with socket.socket(fileno=handle) as sock:
        while True:
            try:
                asked = channel.receive(sock, limit=LIMIT_BYTES)
            except channel.ChannelClosed:
                return
            try:
                answer = probe.answer(asked)
            except Exception as error:  # noqa: BLE001 - a fault of ours is told, with its place
                place = error.__traceback__
                while place is not None and place.tb_next is not None:
                    place = place.tb_next
                line = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
                answer = {"error": f"{said(error)} ({line})"}
            channel.send(sock, answer)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
