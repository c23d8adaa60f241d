# a process of its own writes to the result channel | expect: TAMPERED or FORBIDDEN
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    import contextlib
    import json
    import os
    import struct

    forged = json.dumps({"id": 3, "event": "returned", "tuple": False, "results": []}).encode()
    message = struct.pack("!I", len(forged)) + forged
    if os.fork() == 0:
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(fd, message)
        os._exit(0)
    os.wait()
    _kernel[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
