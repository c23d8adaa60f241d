"""A judge with torch and triton loaded and a candidate that runs a kernel: `python triton_candidate.py cpu|cuda`."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

if sys.argv[1] == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton

from orchestrator.judge import sandbox
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.sandbox import Confinement
from orchestrator.tree import remove_tree

KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0) * 2, mask=i < n)

def double(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return y
"""


class IpcHandle(ctypes.Structure):
    """CUDA's 64 opaque bytes."""

    _fields_ = [("data", ctypes.c_byte * 64)]


def moves_as_tritons_cache_does() -> bool:
    """A file written in a folder of its own, then moved up: every layer of Landlock must grant it."""
    Path("cache/tmp").mkdir(parents=True)
    written = Path("cache/tmp/kernel.so")
    written.write_bytes(b"x")
    return written.replace("cache/kernel.so").is_file()


def graph_replays() -> bool:
    x, graph = torch.ones(8, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 3
    graph.replay()
    torch.cuda.synchronize()
    return y.sum().item() == 24


def judges_memory_opens(handle: str) -> bool:
    """The judge's allocation through CUDA IPC: its first two floats."""
    cuda, address, floats = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), (ctypes.c_float * 2)()
    opened = cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), IpcHandle.from_buffer_copy(bytes.fromhex(handle)), 1)
    copied = cuda.cuMemcpyDtoH_v2(floats, address, ctypes.c_size_t(8))
    return (opened, copied, list(floats)) == (0, 0, [7.0, 8.0])


def target(sock: socket.socket, config: dict[str, object]) -> None:
    sys.path.insert(0, str(Path.cwd()))
    import candidate

    device = str(config["device"])
    x = torch.randn(1000, device=device)
    answer = {"kernel": bool((candidate.double(x) == 2 * x).all()), "moved": moves_as_tritons_cache_does()}
    # Large enough for torch to use its threads, none of which survived the fork.
    answer["parallel"] = torch.ones(512, 512).matmul(torch.ones(512, 512)).sum().item() == 512**3
    if device == "cuda":
        answer["graph"] = graph_replays()
        answer["pinned"] = torch.ones(10).pin_memory().cuda().sum().item() == 10
        answer["ipc"] = judges_memory_opens(str(config["handle"]))
    sock.sendall(json.dumps(answer).encode() + b"\n")


def handle_of(buffer: torch.Tensor) -> str:
    handle = IpcHandle()
    assert ctypes.CDLL("libcuda.so.1").cuIpcGetMemHandle(ctypes.byref(handle), ctypes.c_uint64(buffer.data_ptr())) == 0
    return bytes(handle).hex()


def main() -> None:
    device = sys.argv[1]
    sandbox.make_undumpable()
    server = ForkServer.start(target)  # before the first touch of CUDA
    if device == "cuda" and not torch.cuda.is_available():
        print("null")
        return
    # The first allocation, because an IPC handle opens the whole block that holds it.
    buffer = torch.tensor([7.0, 8.0], device=device)
    config: dict[str, object] = {"device": device, "handle": handle_of(buffer) if device == "cuda" else ""}
    folder = Path(tempfile.mkdtemp(prefix="candidate-"))
    (folder / "candidate.py").write_text(KERNEL)
    started = time.monotonic()
    child = server.spawn(config, Confinement(folder, device=device == "cuda"))
    spawned_s = time.monotonic() - started
    line = child.sock.makefile().readline()
    answered_s = time.monotonic() - started
    ended = child.wait(30) or child.kill("timeout")
    child.close()
    server.close()
    remove_tree(folder)
    answer = json.loads(line) if line else ended.output
    pieces = [piece.name for piece in child.pieces if not piece.held]
    print(
        json.dumps(vars(ended) | {"answer": answer, "spawned_s": spawned_s, "answered_s": answered_s, "lost": pieces})
    )


if __name__ == "__main__":
    assert triton.__version__
    main()
