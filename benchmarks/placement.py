"""What it does to a kernel's time where its data lie: why a measurement times short kernels at many places.

    python benchmarks/placement.py [--places 8]

Captures the recorded rmsnorm kernel and torch's own at so many places in memory, all in this one process, times them in
turn in random order as a measurement does, and prints for each shape how far the slowest place is above the fastest;
beside it the same of one place timed as often. Decides nothing. Needs a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import triton

from orchestrator import ops, reply, resources
from orchestrator.judge.timing.clock import Clock, Replay, capture
from orchestrator.judge.timing.statistics import latency_us
from orchestrator.ops import Op

SHAPES = ((64, 4096), (4096, 1024), (65536, 128), (8192, 2048), (16384, 4096))
ROUNDS, REPLAYS = 12, 10
Captured = tuple[Replay, Replay]  # what is done before a replay, and the replay


def kernels(op: Op, folder: Path) -> dict[str, Callable[..., object]]:
    """The recorded one and torch's own."""
    text = (op.recorded / "correct-1.md").read_text()
    (folder / op.spec.kernel_name).write_bytes(
        reply.files(text, op.spec.kernel_name, op.spec.function)[op.spec.kernel_name]
    )
    sys.path.insert(0, str(folder))
    ours = getattr(importlib.import_module(Path(op.spec.kernel_name).stem), op.spec.function)
    return {"recorded": ours, "torch": lambda x, w: torch.nn.functional.rms_norm(x, x.shape[-1:], w, 1e-6)}


def captured(clock: Clock, work: Callable[..., object], shape: tuple[int, int], kept: list[object]) -> Captured:
    """One call on new inputs, with results of its own; memory of a random size is taken before, so that they lie
    elsewhere than they would have."""
    kept.append(torch.empty(random.randint(1, 40) << 20, dtype=torch.uint8, device="cuda"))
    inputs = {
        "x": torch.randn(shape, device="cuda", dtype=torch.bfloat16),
        "w": torch.randn(shape[1], device="cuda", dtype=torch.bfloat16),
    }
    prepare = clock.moving(inputs, {"x": 1, "w": 2}, tied=False)
    graph, result = capture(lambda: work(**inputs))
    kept += [inputs, result]
    return prepare, graph.replay


def apart(clock: Clock, them: Mapping[int, Captured]) -> str:
    """Their latencies, and by how much the slowest is above the fastest."""
    found: dict[int, list[float]] = {number: [] for number in them}
    for _ in range(ROUNDS):
        for number in random.sample(list(them), len(them)):
            prepare, replay = them[number]
            times = sorted(clock.block(replay, REPLAYS, prepare))
            found[number].append(times[len(times) // 2])
    latencies = sorted(map(latency_us, found.values()))
    return f"{latencies[0]:.2f} to {latencies[-1]:.2f} us, {latencies[-1] / latencies[0] - 1:.1%} apart"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, default=8)
    places = parser.parse_args().places
    print(f"{torch.cuda.get_device_name()}; torch {torch.__version__}, triton {triton.__version__}; bfloat16")
    op, clock = ops.load("rmsnorm", resources.shipped("configs") / "ops"), Clock()
    with tempfile.TemporaryDirectory() as folder:
        for name, work in kernels(op, Path(folder)).items():
            for shape in SHAPES:
                kept: list[object] = []
                them = {number: captured(clock, work, shape, kept) for number in range(places)}
                print(f"{name:9} {shape[0]:>6}x{shape[1]:<5} at {places} places:   {apart(clock, them)}")
                again = dict.fromkeys(range(places), them[0])
                print(f"{'':9} {'':12} at one, {places} times: {apart(clock, again)}", flush=True)


if __name__ == "__main__":
    main()
