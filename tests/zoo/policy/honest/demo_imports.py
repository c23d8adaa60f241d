# honest: a demo block that imports what it needs, binds names of builtins, and names what its own imports are called | notes: 1
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y


def rmsnorm_triton(x, w, eps=1e-6):
    time = x.shape[0]
    assert time >= 0 and max(1, time)
    return _launch(x, w, eps)


if __name__ == "__main__":
    import argparse
    import sys
    import time

    import numpy as np
    from torch.nn import functional as F

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=128)
    args = parser.parse_args(sys.argv[1:])
    input = torch.randn(args.rows, 1024, device="cuda")
    max = np.float32(0.0)
    weight = torch.randn(1024, device="cuda")
    start = time.perf_counter()
    torch.testing.assert_close(rmsnorm_triton(input, weight), F.rms_norm(input, (1024,), weight, 1e-6))
    print(time.perf_counter() - start, max)
