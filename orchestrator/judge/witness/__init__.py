"""What is seen of a candidate from inside its own process, beside its code.

`Witness` is the whole interface: made before the kernel file is imported, asked after the import, and put around each
call of the entry function. What it says may convict and never acquits: the code it watches shares its interpreter and
can take it apart. Owns the order in which things are installed, watched and looked at; each part owns what it sees:

  origin        whose code is asking: the candidate's host code or Triton's own
  operations    torch operations that host code dispatched
  launches      kernels launched, with how many programs; muting them
  allocator     memory with canaries on both sides and poison inside
  loads         where kernels read, in the interpreter, beside what they may
  kept          what the file keeps between calls, as fingerprints
  results       what a result shares its storage with, and attributes set on it
  trace         kernels that the device ran
  state         global state before and after (looks: of what)
  namespaces    functions that were replaced
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import torch

from orchestrator.judge.ways import Way
from orchestrator.judge.witness import namespaces
from orchestrator.judge.witness.allocator import Allocator
from orchestrator.judge.witness.kept import Kept
from orchestrator.judge.witness.launches import Launches
from orchestrator.judge.witness.loads import Loads
from orchestrator.judge.witness.operations import Operations
from orchestrator.judge.witness.origin import Origins
from orchestrator.judge.witness.results import Results
from orchestrator.judge.witness.state import State
from orchestrator.judge.witness.trace import Trace

__all__ = ["Seen", "Witness", "prepare"]


def prepare() -> None:
    """Take the widest snapshot now: in the process that candidates are forked from, so that each need not."""
    namespaces.wide()


class Witness:
    """Watches one candidate. `kernel` is the path of its file, as it will stand in the code objects."""

    def __init__(self, kernel: str, *, interpreted: bool) -> None:
        self._origins = Origins(kernel)
        self._allocator = Allocator()
        self._launches = Launches(self._origins.names)
        self._operations = Operations(self._origins, self._allocator)
        self._results = Results()
        self._kept = Kept(self._origins.names)
        self._state = State(self._origins, interpreted=interpreted)  # last: what was installed above is no change
        self._state.begin()

    def imported(self) -> list[str]:
        """Global state that importing the kernel file changed, in sentences."""
        return self._state.imported()

    def final(self) -> list[str]:
        """Replaced functions in every loaded module of torch, triton and our own; tens of milliseconds: at the end."""
        return self._state.final()

    @contextmanager
    def watching(self, inputs: Mapping[str, torch.Tensor], way: Way = Way.PLAIN) -> Iterator[Seen]:
        """Around one call of the entry, which is made in that way."""
        seen = Seen(self._allocator, self._results, self._kept, inputs)
        self._allocator.begin(recycling=way is Way.RECYCLED)
        with seen.trace if way is Way.TRACED else nullcontext():  # outermost: what it starts is no change
            yield from self._watching(seen, way)

    def _watching(self, seen: Seen, way: Way) -> Iterator[Seen]:
        self._operations.clear()
        self._state.begin()
        self._launches.begin(way)
        loads = Loads(self._allocator, seen.inputs) if way is Way.GUARDED else None
        depth = torch._C._len_torch_dispatch_stack()
        self._operations.__enter__()
        try:
            with loads or nullcontext():
                yield seen
        finally:
            left = self._operations.leave(depth)
            self._launches.end()
            seen.operations = self._operations.found()
            seen.launches = self._launches.found()
            seen.loads = loads.found() if loads else []
            seen.trace.own = self._launches.symbols()
            seen.state = left + self._state.end()


class Seen:
    """What was seen of one call."""

    def __init__(self, allocator: Allocator, results: Results, kept: Kept, inputs: Mapping[str, torch.Tensor]) -> None:
        self._allocator = allocator
        self._results = results
        self._kept = kept
        self.inputs = inputs
        self.loads: list[dict[str, object]] = []
        self.operations: list[dict[str, object]] = []
        self.launches: list[dict[str, object]] = []
        self.state: list[str] = []
        self.trace = Trace()

    def evidence(self, results: Sequence[object]) -> dict[str, object]:
        """All of it as JSON values, once the call's work is done. On a GPU this waits for it."""
        return {
            "operations": self.operations,
            "launches": self.launches,
            "overruns": self._allocator.overruns(),
            "results": self._results.look(self.inputs, results),
            "loads": self.loads,
            "state": self.state,
            **self.trace.found(),
            "kept": self._kept.fingerprints(),
        }
