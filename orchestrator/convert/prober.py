"""The probe's process, seen from outside: started without keys, asked, ended at its time limit.

Owns the process and its deadline. What it answers is the person's code's doing, and is believed as that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from orchestrator.convert.draft import Draft
from orchestrator.convert.examples import PartSeen
from orchestrator.convert.extract import Cut
from orchestrator.convert.write import op
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.executors.local import judge_environment
from orchestrator.judge import channel
from orchestrator.ops import Op
from orchestrator.probed import Counted, Differentiated, Examined, Outcome, Trial
from orchestrator.records import from_json, to_json
from orchestrator.text import printable
from orchestrator.tree import lay_out

LIMIT_S = 120.0  # of one question
_ANSWER_BYTES = 16 << 20
_PERSONS = ("HOME", "USER", "TMPDIR", "CONDA_PREFIX", "HF_HOME", "TORCH_HOME", "XDG_CACHE_HOME")


def environment() -> dict[str, str]:
    """What code of the person's gets: what Python and the GPU need, where their files are, and no key."""
    return judge_environment() | {name: os.environ[name] for name in _PERSONS if name in os.environ}


class Prober:
    """Asks one probe; see `orchestrator.judge.convert`."""

    def __init__(self, process: asyncio.subprocess.Process, sock: socket.socket, log: Path, limit_s: float) -> None:
        self._process = process
        self._sock = sock
        self._log = log
        self._limit_s = limit_s

    async def examine(self, cut: Cut, init: Any, calls: Sequence[Mapping[str, Any]] | None) -> Examined:
        """What the examples show. Raises UsageError with what stands in the way."""
        target, given = cut.target, None if calls is None else list(calls)
        asked = {
            "path": str(target.path),
            "first": target.first,
            "method": target.method,
            "cut": cut.text,
            "init": init,
            "calls": given,
        }
        found = from_json(Examined, str((await self._ask("examine", asked))["examined"]))
        if found.problem:
            raise UsageError(f"{target.path.name}:{target.name}: {found.problem}")
        return found

    async def trials(self, draft: Draft, trials: Sequence[Trial]) -> list[Outcome]:
        """What becomes of each trial of the op that the draft is."""
        if not trials:
            return []
        with _laid_out(op(draft)) as folder:
            asked = _files(draft.name, folder) | {"trials": [to_json(one, indent=None) for one in trials]}
            answer = await self._ask("trials", asked)
        return [from_json(Outcome, str(one)) for one in answer["outcomes"]]  # type: ignore[attr-defined]

    async def counted(self, draft: Draft, sizes: Sequence[Mapping[str, int]]) -> list[Counted]:
        """How many floating-point operations a call of its reference makes at each of these sizes."""
        with _laid_out(op(draft)) as folder:
            trials = [to_json(Trial(dict(each)), indent=None) for each in sizes]
            answer = await self._ask("counted", _files(draft.name, folder) | {"trials": trials})
        return [from_json(Counted, str(one)) for one in answer["counts"]]  # type: ignore[attr-defined]

    async def built(self, sizes: Sequence[Mapping[str, int]]) -> list[dict[str, list[int]] | None]:
        """Shapes of the object's own tensors where its constructor is given other sizes."""
        answer = await self._ask("built", {"sizes": [dict(each) for each in sizes]})
        return answer["shapes"]  # type: ignore[return-value]

    async def agrees(self, draft: Draft) -> str:
        """Why the op's reference is not the original on the first example; "" where it is."""
        with _laid_out(op(draft)) as folder:
            return str((await self._ask("agrees", _files(draft.name, folder) | _source(draft)))["agrees"])

    async def differentiated(self, draft: Draft) -> Differentiated:
        """Which of its results and inputs autograd goes through, in the op and in the original."""
        with _laid_out(op(draft)) as folder:
            asked = _files(draft.name, folder) | _source(draft) | {"results": list(draft.outputs)}
            return from_json(Differentiated, str((await self._ask("differentiated", asked))["found"]))

    async def gradients(self, forward: Draft, whole: Draft, module: str, trial: Trial | None) -> str:
        """Why the gradients of an autograd.py are not the original's, or at a trial not those of its values; "" if so.

        `whole` is the op whose folder has all references: the backward op where there is one.
        """
        with _laid_out(op(whole)) as folder:
            asked = _files(whole.name, folder) | _source(forward) | {"name": forward.name, "text": module}
            asked["trial"] = to_json(trial, indent=None) if trial else ""
            return str((await self._ask("gradients", asked))["differs"])

    async def composed(self, whole: Op, text: str, trials: Sequence[Trial]) -> tuple[str, dict[str, PartSeen]]:
        """Why a split does not compose to the whole, and what its parts were called with."""
        with _laid_out(whole) as folder:
            asked = _files(whole.name, folder) | {"trials": [to_json(one, indent=None) for one in trials]}
            del asked["reference"]  # what is exact, the test file says
            answer = await self._ask("composed", asked | {"text": text, "whole": f"{whole.name}_composed"})
        if answer["differs"]:
            return str(answer["differs"]), {}
        calls, inner, passed_on = (cast(dict[str, Any], answer[key]) for key in ("calls", "inner", "passed_on"))
        return "", {
            part: PartSeen(tuple(each), tuple(inner[part]), tuple(passed_on[part])) for part, each in calls.items()
        }

    async def _ask(self, question: str, facts: Mapping[str, Any]) -> channel.Message:
        try:
            channel.send(self._sock, {"ask": question, **facts})
            answer = await asyncio.to_thread(channel.receive, self._sock, self._limit_s, _ANSWER_BYTES)
        except channel.ChannelTimeout:
            raise UsageError(
                f"the code did not come to an end in {self._limit_s:g} s; give a smaller example, or --probe-s SECONDS"
            ) from None
        except channel.ChannelClosed:
            raise UsageError(f"the code ended its process: {self._last_line() or 'without a word'}") from None
        if "error" in answer:
            raise InfrastructureError(f"the probe failed: {printable(str(answer['error']), 400)}")
        return answer

    def _last_line(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        return printable(next((line.strip() for line in reversed(lines) if line.strip()), ""))


@contextlib.asynccontextmanager
async def probing(limit_s: float = LIMIT_S) -> AsyncIterator[Prober]:
    """A probe, ended with everything that it started."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory(prefix="convert-") as place, ours, theirs:
        log = Path(place) / "probe.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "orchestrator.judge.convert.probe", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(),
                cwd=place,
                start_new_session=True,
            )
        theirs.close()
        try:
            yield Prober(process, ours, log, limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@contextlib.contextmanager
def _laid_out(made: Op) -> Any:
    with tempfile.TemporaryDirectory(prefix="trial-") as place:
        folder = Path(place) / "op"
        lay_out(made.workspace_files(), folder)
        yield folder


def _source(draft: Draft) -> dict[str, Any]:
    """Of each input, whether it is an argument or the object's own, and by which name."""
    return {"source": {name: [one.kind, one.key] for name, one in draft.inputs.items()}}


def _files(name: str, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "module": f"{name}_triton",
        "function": f"{name}_triton",
        "reference": f"{name}_ref",
    }
