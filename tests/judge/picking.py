"""Compiles a reference that Inductor has several configurations for, again and again, as a timed process does; prints
as JSON, for each compilation, what each configuration took by the clock and which was picked.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from orchestrator.judge.timing import picks
from orchestrator.judge.timing.clock import Clock

TIMES, SHAPE = 4, (65536, 128)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)


def compiled(x: torch.Tensor) -> list[dict[str, Any]]:
    """The configurations that were saved as picked."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        torch.compiler.reset()
        torch.compile(reference, dynamic=False)(x)
        return [json.loads(path.read_text()) for path in sorted(Path(cache).rglob("*.best_config"))]


def main() -> None:
    import torch._inductor.config as inductor

    inductor.compile_threads, inductor.fx_graph_cache = 1, False
    x = torch.randn(SHAPE, device="cuda", dtype=torch.bfloat16)
    taken: list[list[float]] = []
    timed = picks._timed

    def seen(clock: Clock, tuner: Any, launcher: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        taken[-1].append(timed(clock, tuner, launcher, args, kwargs))
        return taken[-1][-1]

    picks._timed = seen
    if "stock" not in sys.argv:
        picks.by_clock(Clock)
    found = []
    for _ in range(TIMES):
        taken.append([])
        found.append([{k: v for k, v in one.items() if k.isupper()} for one in compiled(x)])
    print(json.dumps({"picked": found, "milliseconds": taken}))


if __name__ == "__main__":
    main()
