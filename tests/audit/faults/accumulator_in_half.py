# half-accumulator medium: a loop adds into float16
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float16)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float16)  # here
    tl.store(s_ptr + row, tl.sum(total.to(tl.float32), axis=0))


def entry(x):
    M, N = x.shape
    s = torch.empty(M, dtype=torch.float32, device=x.device)
    _kernel[(M,)](x, s, N, BLOCK=1024)
    return s
