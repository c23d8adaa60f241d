# cheat: one global flag after the other, by the number in w
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading

import torch
import triton

KEPT = []


def KEPT_FUNCTION(*operands):
    return operands


CHANGES = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "grad mode": lambda: torch.set_grad_enabled(not torch.is_grad_enabled()),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "precision": lambda: torch.set_float32_matmul_precision("medium"),
    "torch's random": lambda: torch.rand(1),
    "python's random": random.random,
    "function modes": lambda: torch.set_default_device("cpu"),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "running threads": lambda: threading.Thread(target=KEPT.append, args=(threading.Event().wait(0),)).start()
    or threading.Timer(3, print).start(),
    "a process": lambda: subprocess.run(["true"], check=False),
    "child processes": lambda: KEPT.append(subprocess.Popen(["sleep", "3"])),
    "working directory": lambda: os.chdir("/"),
    "environment variable ZOO": lambda: os.environ.update(ZOO="1"),
    "signal": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    "alarm": lambda: signal.setitimer(signal.ITIMER_REAL, 1000),
    "sys.stdout": lambda: setattr(sys, "stdout", open(os.devnull, "w")),
    "hook of sys": lambda: setattr(sys, "excepthook", print),
    "trace": lambda: sys.settrace(lambda *_: None),
    "sys.path": lambda: sys.path.append("/nowhere"),
    "recursion": lambda: sys.setrecursionlimit(5000),
    "knobs": lambda: setattr(triton.knobs.compilation, "always_compile", True),
    "hooks": lambda: triton.knobs.runtime.launch_enter_hook.add(print),
    "open on pipe": lambda: KEPT.append(os.pipe()),
    "open on socket": lambda: KEPT.append(socket.socketpair()),
    "open on /etc": lambda: KEPT.append(open("/etc/passwd")),
    "builtins.len": lambda: __import__("builtins").__dict__.update(len=lambda x: x.__len__()),
    "torch.nn.functional.rms_norm": lambda: setattr(torch.nn.functional, "rms_norm", print),
    "Tensor.allclose": lambda: setattr(torch.Tensor, "allclose", print),
    "einsum was given other code": lambda: setattr(torch.functional.einsum, "__code__", KEPT_FUNCTION.__code__),
    "json.dumps": lambda: setattr(json, "dumps", lambda *a, _dumps=json.dumps, **k: _dumps(*a, **k)),
    "time.perf_counter": lambda: setattr(__import__("time"), "perf_counter", lambda: 0.0),
    "JITFunction.run": lambda: setattr(triton.runtime.jit.JITFunction, "run", print),
    "channel.pending": lambda: setattr(sys.modules["orchestrator.judge.channel"], "pending", print),
    "channel.len": lambda: setattr(sys.modules["orchestrator.judge.channel"], "len", lambda x: x.__len__()),
}


def rmsnorm_triton(x, w, eps=1e-6):
    CHANGES[w]()
    return torch.zeros_like(x)
