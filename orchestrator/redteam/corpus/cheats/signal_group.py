# cheat: signals to the parent | expect: FORBIDDEN | runtime: COMPILE_ERROR
import os
import signal
import torch
import triton
import triton.language as tl


if os.environ.get("CHEAT_SANDBOX"):
    os.kill(os.getppid(), signal.SIGKILL)


def rmsnorm_triton(x, w, eps=1e-6):
    return torch.zeros_like(x)
