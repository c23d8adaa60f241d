"""An op's check in a confined process: for files that a model wrote and nobody has read yet.

What runs there is the check that runs in the judge for other ops. It shares its process with those files, so what it
says is their own word: it decides what a person is shown, and lets no run start.
"""

from __future__ import annotations

import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.judge import channel, opcheck, sandbox, worker
from orchestrator.judge.candidate import how_it_ended
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.promises import broken
from orchestrator.judge.sandbox import Confinement
from orchestrator.records import Limits, OpCheck, OpCheckJob, from_json, to_json

_LIMIT_S = 300
_ENDED_S = 5.0  # for the warden to learn how a process ended that has closed its channel
_ANSWER_BYTES = 4 << 20


def main(sock: socket.socket, config: dict[str, Any]) -> None:
    """What each process of a fork server runs: the check of a draft, where it was given one, or a kernel file."""
    if "check" not in config:
        worker.main(sock, config)
        return
    result = opcheck.check(from_json(OpCheckJob, config["check"]), config["device"], config["shown"])
    channel.send(sock, {"check": to_json(result, indent=None)})


def check(server: ForkServer, job: OpCheckJob, device: str, shown: str) -> OpCheck:
    """The fate of every decoy, as the confined process says. One that ends without a word is the draft's fault."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="draft-") as scratch:
        confinement = Confinement(Path(scratch), (Path(job.folder),), device == "cuda", sandbox.Limits())
        config: dict[str, object] = {"check": to_json(job, indent=None), "device": device, "shown": shown}
        child = server.spawn(config, confinement)
        try:
            return from_json(OpCheck, str(channel.receive(child.sock, _LIMIT_S, _ANSWER_BYTES)["check"]))
        except channel.ChannelTimeout:
            how = f"did not end within {_LIMIT_S} s"
        except (channel.ChannelClosed, channel.ChannelViolation, KeyError, ValidationError):
            how = how_it_ended(child.wait(_ENDED_S) or child.kill("silent"), Limits())
        finally:
            child.close()
    said = broken(f"reference.py: the confined process that ran it {how}")
    return OpCheck(job.op, shown, (said,), round(time.perf_counter() - begun, 3))
