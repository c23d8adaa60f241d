"""A whole measurement without a GPU: `python measuring.py KERNEL SITTINGS [LACK]`. Prints JSON on what came of it.

LACK is what the machine does not have for the kernel: `start` (its process cannot map its buffers), `disk`, `memory`.

What only a card can do has stand-ins: a clock that times calls on the CPU, no graphs, no roofline, memory that the
driver would give. Everything else is as on a card: the session, the seats and their confined processes, sittings,
values from outside, what replays wrote, the record. The kernel runs in Triton's interpreter, so that its times mean
nothing, and torch.compile's too. The two clocks are not compared: two processes share these few cores.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import pytest
import torch
import triton  # noqa: F401 - in memory before the fork

from orchestrator import config, gpu, measuring, ops, resources
from orchestrator.errors import JudgeError
from orchestrator.judge import interpreter, testfile
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import HostArena
from orchestrator.judge.timing import session, worker
from orchestrator.judge.timing.moves import moved
from orchestrator.judge.timing.seats import Seats
from orchestrator.measured import AUTOTUNED, COMPILED, GpuState
from orchestrator.records import Judging
from orchestrator.tree import lay_out, remove_tree

PROCESSES, ROUNDS = 4, 4


class CpuClock:
    """Calls timed by the CPU's clock."""

    def moving(self, inputs: Mapping[str, torch.Tensor], steps: Mapping[str, int], *, tied: bool) -> Callable[[], None]:
        def prepare() -> None:
            for name, elements in steps.items():
                inputs[name].copy_(moved(inputs[name], elements, tied=tied))

        return prepare

    def block(self, replay: Callable[[], object], count: int, prepare: Callable[[], object]) -> list[float]:
        times = []
        for _ in range(1 + count):
            prepare()
            begun = time.perf_counter()
            replay()
            times.append((time.perf_counter() - begun) * 1e6)
        return times[1:]

    block_alone = block


def captured(work: Callable[[], Any]) -> tuple[Any, Any]:
    """The work, done anew at each replay into what it returned first, as a graph would."""
    result = work()

    def replay() -> None:
        result[1].copy_(work()[1])

    return SimpleNamespace(replay=replay), result


@contextmanager
def loaded(folder: Path, stand_in: ModuleType) -> Iterator[Any]:
    """The op's test file, whose inputs are made on the CPU."""
    with LOADED(folder, stand_in) as test:
        yield CpuTest(test)


LOADED = testfile.loaded


class CpuTest:
    def __init__(self, test: ModuleType) -> None:
        self._test = test

    def __getattr__(self, name: str) -> Any:
        return getattr(self._test, name)

    def make_inputs(self, case: Any, device: str, seed: int) -> Any:
        return self._test.make_inputs(case, "cpu", seed)


class NoStart(HostArena):
    """A buffer that no process can map."""

    @property
    def handle(self) -> dict[str, object]:
        return {**super().handle, "nbytes": 1 << 40}


def lacking(what: str) -> None:
    """The machine as the judge sees it: well off, but for that."""
    put, free = pytest.MonkeyPatch().setattr, 0 if what == "memory" else 8 << 30
    put(torch.cuda, "mem_get_info", lambda *a: (free, 8 << 30))
    if what == "start":
        put(session, "DeviceArena", NoStart)
    if what == "disk":
        put(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))


def stand_ins() -> None:
    """Before the fork servers are forked: the processes that are timed have them too."""
    put = pytest.MonkeyPatch().setattr
    put(worker, "Clock", CpuClock)
    put(worker, "capture", captured)
    put(worker, "_pads", tuple)
    for name in ("empty_cache", "synchronize"):
        put(torch.cuda, name, lambda *a: None)
    put(torch.cuda, "memory_reserved", lambda *a: 0)
    put(torch.cuda, "get_device_properties", lambda *a: SimpleNamespace(total_memory=8 << 30, name="none", uuid=""))
    put(session, "Seats", lambda job, servers, device, *rest: Seats(job, servers, "cpu", *rest))
    put(session, "DeviceArena", HostArena)
    put(session, "_INPUTS_BYTES", 8 << 20)
    put(gpu, "state", lambda name, uuid, pids: GpuState(name, "none", sm_mhz=len(pids)))
    put(session._Measurement, "_ours", lambda self, series: [])
    put(testfile, "loaded", loaded)


def main() -> None:
    kernel, times = Path(sys.argv[1]), int(sys.argv[2])
    interpreter.repair()
    stand_ins()
    lacking(sys.argv[3] if len(sys.argv) > 3 else "")
    servers = [ForkServer.start(worker.main) for _ in range(PROCESSES + 1)]
    op = ops.load("rmsnorm", resources.shipped("configs") / "ops")
    root = Path(tempfile.mkdtemp(prefix="measuring-"))
    lay_out({**op.workspace_files(), op.spec.kernel_name: kernel.read_bytes()}, root / "job")
    settings = config.load(
        overrides=("judge.limits.memory_mb=2048", f"measure.rounds={ROUNDS}", f"measure.sittings={times}")
    )
    job = replace(
        measuring.job_of(op, settings, root / "job", measuring.Rivals()),
        shapes=((4, 32), (3, 20)),
        dtypes=("float32",),
        curve=((2, 32),),
        curve_dtype="float32",
        without=(COMPILED, AUTOTUNED, "liger"),
    )
    measures = session.Session(servers, Judging("no card", True, {}, ()), root / "cache")
    copies = SimpleNamespace(us=lambda nbytes: 0.5, best_gbps=1.0)
    roofline = SimpleNamespace(launch_us=0.001, ideal_us=lambda *a: 0.5, copies=copies, matmul_tflops={})
    pytest.MonkeyPatch().setattr(measures, "_roofline", roofline)
    said: list[str] = []
    try:
        found = measures.measure(job, said.append)
    except JudgeError as error:
        print(json.dumps({"error": str(error), "servers": [one.alive for one in servers]}))
        remove_tree(root)
        return
    shapes = [
        {
            "name": one.name,
            "curve": one.curve,
            "sittings": one.sittings,
            "rounds": [len(each.latencies_us) for each in (one.candidate, *one.baselines)] + [len(one.twin)],
        }
        for one in found.shapes
    ]
    known = {"status": found.status, "message": found.message, "shapes": shapes, "said": said}
    left = [path.name for path in (root / "job").glob("scratch*")]
    print(json.dumps(known | {"sandbox": len(found.sandbox), "left": left, "servers": [one.alive for one in servers]}))
    remove_tree(root)


if __name__ == "__main__":
    main()
