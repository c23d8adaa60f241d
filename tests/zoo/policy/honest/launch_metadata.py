# honest: launch metadata and a repr for the profiler
import torch
import triton
import triton.language as tl


def _meta(grid, kernel, args):
    n = args["N"]
    size = args["y_ptr"].element_size() if "y_ptr" in args else 4
    return {"name": f"{kernel.name} N={n}", "bytes": n * size}


@triton.jit(launch_metadata=_meta, do_not_specialize=["eps"])
def _t(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + c, tl.load(x_ptr + c, mask=c < N, other=0.0), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _t[(1,)](x, y, x.numel(), eps, BLOCK=triton.next_power_of_2(x.numel()))
    return y
