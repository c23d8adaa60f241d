"""Confined candidates with a Witness: one JSON request a line on stdin, one JSON answer a line on stdout.

A request names a kernel file, the inputs, and the calls to make; the answer holds the evidence of each call and, apart
from it, what a judge would find by comparing (the result against `x * w * rsqrt(mean(x * x))`, NaN in it).
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import importlib.util
import json
import socket
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton.language  # noqa: F401 - loaded before the fork

from orchestrator.judge import channel, witness
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.sandbox import Confinement
from orchestrator.judge.ways import Way
from orchestrator.judge.witness import Witness
from orchestrator.tree import remove_tree

WAIT_S = 60


def target(sock: socket.socket, config: dict[str, object]) -> None:
    channel.send(sock, answer(config))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    seen = Witness(request["kernel"], interpreted=True)
    said: dict[str, Any] = {"imported": [], "calls": [], "final": []}
    try:
        module = load(request["kernel"])
        said["imported"] = seen.imported()
        for call in request["calls"]:
            said["calls"].append(one_call(seen, module, request, **call))
        said["final"] = seen.final()
    except BaseException as error:  # noqa: BLE001 - the test reads it
        said["error"] = f"{type(error).__name__}: {error}"[:500]
    return said


def one_call(
    seen: Witness, module: ModuleType, request: dict[str, Any], way: str = "plain", bare: bool = False
) -> dict[str, Any]:
    torch.manual_seed(0)
    dtype = getattr(torch, request["dtype"])
    x, w = (torch.randn(shape).to(dtype) for shape in request["shapes"])
    if request["ones"]:
        x, w = torch.sign(x), torch.ones_like(w)
    arguments = {"x x": (x, w), "x ?": (x, request["extra"]), "[x] w": ([x], w), "x w -1": (x, w, -1, 1e-6)}
    given = arguments[request["arguments"]]
    call: dict[str, Any] = {}
    begun = time.perf_counter()
    watching = nullcontext() if bare else seen.watching({"x": x, "w": w}, Way(way))
    with watching as watched:
        result = module.rmsnorm_triton(*given)
    results = tuple(result) if isinstance(result, tuple | list) else (result,)
    call["evidence"] = {} if watched is None else watched.evidence(results)
    call["seconds"] = time.perf_counter() - begun
    tensors = [one for one in results if isinstance(one, torch.Tensor)]
    call["nan"] = int(sum(torch.isnan(torch.Tensor.detach(one).double()).sum() for one in tensors))
    call["right"] = right(x, w, tensors[0])
    call["facts"] = [facts(one) for one in tensors]
    return call


def right(x: torch.Tensor, w: torch.Tensor, got: torch.Tensor) -> bool:
    wide = x.double()
    if got.shape != x.shape or w.shape != x.shape[-1:]:
        return False
    want = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6) * w.double()
    return bool(((want - torch.Tensor.detach(got).double()).abs() <= 1e-3).all())


def facts(one: torch.Tensor) -> dict[str, Any]:
    storage = one.untyped_storage()
    return {
        "type": type(one) is torch.Tensor,
        "aligned": one.data_ptr() % 512 == 0,
        "offset": one.storage_offset(),
        "stride": list(one.stride()),
        "bytes": storage.nbytes(),
        "base": one._base is not None,
        "version": one._version,
        "grad": one.requires_grad,
    }


def load(kernel: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("rmsnorm_triton", kernel)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rmsnorm_triton"] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    torch.set_num_threads(1)
    witness.prepare()
    server = ForkServer.start(target)
    assert threading.active_count() == 1
    for line in sys.stdin:
        request = json.loads(line)
        scratch = Path(tempfile.mkdtemp(prefix="witness-"))
        child = server.spawn(request, Confinement(scratch, (Path(request["kernel"]),)))
        try:
            said = channel.receive(child.sock, WAIT_S)
        except (channel.ChannelClosed, channel.ChannelTimeout, channel.ChannelViolation) as silent:
            said = {"error": f"{type(silent).__name__}: {child.kill('silent').output[-2000:]}"}
        child.close()
        remove_tree(scratch)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
