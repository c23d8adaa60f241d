"""The judge's end of one confined candidate process.

Owns the conversation with it, its deadlines, and what each way of dying means. What a candidate does wrong leaves
here as a CandidateFailed with its Status; a failure of ours (the fork server gone) as a JudgeError.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from orchestrator.judge import channel, sandbox
from orchestrator.judge.forkserver import Child, Exit, ForkServer
from orchestrator.judge.memory import Arena, Form, Slot, form_of, slots, tensor_in, torch_dtype
from orchestrator.judge.sandbox import Confinement
from orchestrator.judge.ways import Way
from orchestrator.records import Limits, SandboxPiece, Status


class CandidateFailed(Exception):
    """The candidate did something that decides its verdict, or at least that of a case."""

    def __init__(self, status: Status, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.detail = detail

    @property
    def ours(self) -> bool:
        """Whether the machine failed, or somebody else's hand: nothing that the candidate is convicted of."""
        return self.status is Status.INFRASTRUCTURE


_DEVICE_ERRORS = ("CUDA error", "HIP error", "Triton Error")  # what torch adds to them is no help
_NO_SPACE = os.strerror(errno.ENOSPC)
_LEAST_FREE_BYTES = 16 << 20
_CORES = os.cpu_count() or 1  # all of them busy for the whole time is within the limits


_SAID = {"shape", "dtype", "device", "layout"}  # of each tensor
_QUOTED = 4000  # characters of what a candidate says; its worker caps too, but is not to be trusted with it
_MOST_KEPT_BYTES = 256 << 20  # of inputs that are kept as they were given
ZONE = 256 << 10  # bytes of red zone on either side of an input: several rows of the usual sizes


class Innocent(CandidateFailed):
    """What the candidate may have had no part in: it is given another process, once."""

    ours = True


class KilledFromOutside(Innocent):
    """SIGKILL, and not from us: somebody else, or the kernel when memory ran out."""


@dataclass(frozen=True)
class Returned:
    """What a candidate's process says of a call: each result's type, shape, dtype ..., and what was seen meanwhile."""

    call: int
    results: list[dict[str, Any]]
    is_tuple: bool
    evidence: Mapping[str, Any]


# How a death by the watcher's hand reads in a report.
_REASONS = {
    "memory": "used more memory than the limit of {limits.memory_mb} MB",
    "processes": "started more than {limits.processes} processes",
    "disk": "wrote more than {limits.scratch_mb} MB into its scratch folder",
}


class Candidate:
    """A kernel file in a process of its own, from its start to its end."""

    def __init__(
        self,
        server: ForkServer,
        kernel: Path,
        function: str,
        device: str,
        arenas: tuple[Arena, Arena],
        limits: Limits,
        *,
        scratch: Path | None = None,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """`scratch` is where it may write, if not in scratch/ beside the kernel; `more` goes into its configuration."""
        self._limits = limits
        self._inputs, self._outputs = arenas
        self._device = device
        self._scratch = scratch or kernel.parent / "scratch"
        self._number = 0
        self._placed: torch.Tensor | None = None  # what the inputs' buffer was given for the last call
        config: dict[str, object] = {
            "kernel": str(kernel),
            "module": kernel.stem,
            "function": function,
            "device": device,
            **more,
        }
        fds = [arena.fd for arena in arenas if arena.fd is not None]
        self._child: Child = server.spawn(config, confinement_of(kernel, limits, device, self._scratch), fds)
        self.alive = True

    @property
    def pid(self) -> int:
        """The process."""
        return self._child.pid

    @property
    def pieces(self) -> tuple[SandboxPiece, ...]:
        """Which pieces of the confinement hold."""
        return self._child.pieces

    def attach(self) -> None:
        """Map the buffers, and start the GPU. No code of the candidate's has run yet: what fails is the machine's."""
        handles = [self._inputs.handle, self._outputs.handle]
        try:
            self._ask({"do": "attach", "arenas": handles}, self._limits.import_s, "start")
        except CandidateFailed as failed:
            raise Innocent(Status.INFRASTRUCTURE, f"its process could not start: {failed.message}") from failed

    def load(self) -> object:
        """Import the kernel file; returns what that is said to have changed in the process."""
        return self._ask({"do": "import"}, self._limits.import_s, "import").get("state")

    def launched(self, after: int) -> object:
        """Which specializations it is said to have launched, in the interpreter, without the first so many."""
        return self._ask({"do": "launched", "after": after}, self._limits.call_s, "question").get("specializations")

    def final(self) -> channel.Message:
        """What the whole run is said to have changed in the process (`state`), and which specializations to have
        launched (`specializations`, in the interpreter)."""
        return self._ask({"do": "final"}, self._limits.call_s, "final comparison")

    def warm(self, inputs: Mapping[str, object], parameters: Mapping[str, object]) -> None:
        """Have everything compiled that a call on such shapes, strides and dtypes launches; nothing runs."""
        message: channel.Message = {"do": "warm", "inputs": dict(inputs), "parameters": dict(parameters)}
        self._ask(message, self._limits.call_s + self._limits.compile_s, "compiling")

    def configurations(self) -> int:
        """See Proxy."""
        found = self._ask({"do": "configurations"}, self._limits.call_s, "question").get("count")
        return found if isinstance(found, int) else 1

    def choose_configuration(self, index: int) -> None:
        """See Proxy."""
        self._ask({"do": "choose", "index": index}, self._limits.call_s, "choice")

    def call(
        self,
        inputs: Mapping[str, torch.Tensor],
        parameters: Mapping[str, object],
        seconds: float,
        *,
        fill: int,
        way: Way,
    ) -> Returned:
        """Call the entry function on copies of `inputs`, whose red zones hold bytes of value `fill`.

        `way` says how the call is made. What it says it returned is for `take` to get: the call also delivers it,
        since each turn of another process on a GPU costs as much as a small case does.
        """
        self._blank()
        placed = self._place(inputs, fill)
        message: channel.Message = {
            "do": "call",
            "inputs": {name: vars(slot) for name, slot in placed.items()},
            "parameters": dict(parameters),
            "way": way,
        }
        answer = self._ask(message, seconds, "call")
        return self._described(answer, answer.get("evidence"))

    def _described(self, answer: channel.Message, evidence: object) -> Returned:
        """What the answer just received says was returned."""
        results = answer.get("results")
        if not isinstance(results, list) or not all(map(_is_description, results)):
            raise self._forged("its description of the results is malformed")
        if not isinstance(evidence, dict):
            raise self._forged("its evidence is malformed")
        return Returned(self._number, results, answer.get("tuple") is True, evidence)

    def regions(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Tensor, Slot]]:
        """Each input's bytes in the shared buffer as they are now, zones included."""
        return {name: (self._inputs.region(slot), slot) for name, slot in self._slots(inputs)[0].items()}

    @property
    def intact(self) -> bool:
        """Whether the inputs' buffer, zones and all, holds what it was given; False where that must be looked at."""
        return self._placed is not None and torch.equal(self._placed, self._inputs.region(_bytes(self._placed.numel())))

    def take(self, returned: Returned) -> tuple[torch.Tensor, ...]:
        """Private copies of what the call just made has delivered into the judge's buffer."""
        placed = self._describe(returned.results)
        self._outputs.used = max(self._outputs.used, *(slot.offset + slot.nbytes for slot in placed))
        return tuple(tensor_in(self._outputs.region(slot).clone(), slot) for slot in placed)

    def fetch(self, returned: Returned) -> tuple[torch.Tensor, ...]:
        """The results of a recent call as they are now: the worker still holds those of the last few."""
        self._blank()
        self._synchronize()
        self._ask({"do": "deliver", "call": returned.call}, self._limits.call_s, "deliver")
        return self.take(returned)

    def _blank(self) -> None:
        """NaN for floats, wherever something was delivered before: what is not delivered cannot look right."""
        self._outputs.region(_bytes(self._outputs.used)).fill_(0xFF)
        self._outputs.used = 0

    def interrupt(self) -> None:
        """See Child."""
        self._child.interrupt()

    def end(self) -> Exit:
        """End the process and everything it started; returns how it had ended, with what it printed."""
        self.alive = False
        return self._child.wait(0) or self._child.kill("killed")

    def _describe(self, results: Sequence[Mapping[str, Any]]) -> list[Slot]:
        try:
            wanted: list[Form] = [
                (tuple(int(size) for size in one["shape"]), torch_dtype(one["dtype"]), None) for one in results
            ]
            for shape, dtype, _ in wanted:  # no tensor has negative sizes, or more than fit a number
                torch.empty(shape, dtype=dtype, device="meta")
        except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise self._forged("its description of the results is malformed") from error
        placed, total = slots(wanted)
        if total > self._outputs.nbytes:
            raise CandidateFailed(
                Status.WRONG_SHAPE, f"returned {total} bytes, more than any result of this op can have"
            )
        return placed

    def _slots(self, inputs: Mapping[str, torch.Tensor]) -> tuple[dict[str, Slot], int]:
        placed, total = slots([form_of(tensor) for tensor in inputs.values()], ZONE)
        if total > self._inputs.nbytes:
            raise ValueError(
                f"the case's inputs take {total} bytes and the shared buffer has {self._inputs.nbytes}; "
                "raise judge.limits.arena_mb"
            )
        return dict(zip(inputs, placed, strict=True)), total

    def _place(self, inputs: Mapping[str, torch.Tensor], fill: int) -> dict[str, Slot]:
        placed, total = self._slots(inputs)
        self._write(placed, inputs, fill)
        self._placed = self._inputs.region(_bytes(total)).clone() if total <= _MOST_KEPT_BYTES else None
        self._synchronize()
        return placed

    def _write(self, placed: Mapping[str, Slot], inputs: Mapping[str, torch.Tensor], fill: int) -> None:
        for name, slot in placed.items():
            region = self._inputs.region(slot)
            region.fill_(fill)
            tensor_in(region, slot).copy_(inputs[name])

    def _ask(self, message: channel.Message, seconds: float, what: str) -> channel.Message:
        if channel.pending(self._child.sock) and self._child.wait(0.2) is None:
            raise self._forged("it wrote to the result channel without being asked")
        self._number += 1
        try:
            channel.send(self._child.sock, {"id": self._number, **message})
            answer = channel.receive(self._child.sock, seconds)
        except channel.ChannelTimeout:
            self._kill()
            raise CandidateFailed(Status.TIMEOUT, f"the {what} did not end within {seconds:g} s") from None
        except channel.ChannelClosed:
            raise self._died(what) from None
        except channel.ChannelViolation as violation:
            raise self._forged(f"the result channel carried {violation}") from None
        if answer.get("id") != self._number:
            raise self._forged("an answer carried the wrong number")
        if answer.get("event") == "raised":
            if answer.get("lost"):  # every further call would fail of the same cause
                self._kill()
            self._disk_has_room(str(answer.get("text", "")))
            raise _raised(answer, what, interpreted=self._device == "cpu")
        return answer

    def _disk_has_room(self, text: str) -> None:
        """Raises CandidateFailed where what was raised is the machine's fault: its disk is full."""
        free = shutil.disk_usage(self._scratch).free
        if _NO_SPACE in text and free < _LEAST_FREE_BYTES:
            self._kill()
            message = f"the disk that holds {self._scratch} is full ({free >> 20} MB free); free some and ask again"
            raise CandidateFailed(Status.INFRASTRUCTURE, message)

    def _kill(self) -> None:
        self.alive = False
        self._child.kill("killed")

    def _died(self, what: str) -> CandidateFailed:
        self.alive = False
        # A closed channel and a live process is a candidate that shut the channel itself.
        exit_ = self._child.wait(5) or self._child.kill("killed")
        kind = KilledFromOutside if (exit_.reason, exit_.signal) == ("signal", signal.SIGKILL) else CandidateFailed
        return kind(
            Status.CRASHED, f"the process {how_it_ended(exit_, self._limits)} during the {what}", exit_.output[-2000:]
        )

    def _forged(self, how: str) -> CandidateFailed:
        self._kill()
        return CandidateFailed(Status.TAMPERED, f"the candidate interfered with the judge: {how}")

    def _synchronize(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


def _bytes(count: int) -> Slot:
    """So many, from a buffer's beginning."""
    return Slot(0, (count,), "uint8")


def _is_description(result: object) -> bool:
    """Whether it says of one result what the worker says of each."""
    return isinstance(result, dict) and (result.get("type") != "torch.Tensor" or result.keys() >= _SAID)


def confinement_of(kernel: Path, limits: Limits, device: str = "cpu", scratch: Path | None = None) -> Confinement:
    """What a process that runs the kernel file may read, write (in scratch/ beside it, if not elsewhere) and take."""
    return Confinement(scratch or kernel.parent / "scratch", (kernel,), device == "cuda", _confined_to(limits))


def _confined_to(limits: Limits) -> sandbox.Limits:
    return sandbox.Limits(
        memory_bytes=limits.memory_mb << 20,
        disk_bytes=limits.scratch_mb << 20,
        cpu_seconds=int(_CORES * limits.total_s),  # the judge's own deadlines come first
        processes=limits.processes,
        shared_bytes=2 * limits.arena_mb << 20,
    )


def how_it_ended(exit_: Exit, limits: Limits) -> str:
    """In words that follow "the process"."""
    if exit_.reason in _REASONS:
        return _REASONS[exit_.reason].format(limits=limits)
    if exit_.reason == "signal":
        return f"was ended by signal {exit_.signal}"
    if exit_.reason == "exited":
        return f"ended itself with code {exit_.code}"
    return "closed its channel to the judge"


def _raised(answer: Mapping[str, Any], what: str, *, interpreted: bool) -> CandidateFailed:
    """What the candidate's process says it raised. Text only: a verdict in it stays text."""
    if interpreted and (limit := str(answer.get("limit", ""))[:_QUOTED]):
        # Nothing is gained by claiming this: a case that was not judged is a case that did not pass.
        message = f"cannot be judged without a GPU: {limit}"
        return CandidateFailed(Status.INFRASTRUCTURE, message[:300], message)
    name, text, trace = (str(answer.get(key, ""))[-_QUOTED:] for key in ("type", "text", "trace"))
    compile_ = what == "import" or answer.get("kind") == "compile"
    status = Status.COMPILE_ERROR if compile_ else Status.RUNTIME_ERROR
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    summary = lines[0] if lines[0].startswith(_DEVICE_ERRORS) else lines[-1]
    return CandidateFailed(status, f"{name}: {summary}"[:300], f"{trace}{name}: {text}")
