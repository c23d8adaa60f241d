# autotune-in-place high: sums are added once for each run of the tuner
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (512, 2048)], key=["N"])  # here
@triton.jit
def _kernel(x_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr + row, tl.sum(x, axis=0))


def entry(x):
    M, N = x.shape
    s = torch.zeros(M, dtype=torch.float32, device=x.device)
    _kernel[lambda meta: (M, triton.cdiv(N, meta["BLOCK"]))](x, s, N)
    return s
