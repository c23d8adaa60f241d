# grid-axis-missing high: every block of the second axis adds the whole row again
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr + row, tl.sum(x, axis=0))


def entry(x):
    M, N = x.shape
    s = torch.zeros(M, dtype=torch.float32, device=x.device)
    _kernel[(M, triton.cdiv(N, 1024))](x, s, N, BLOCK=triton.next_power_of_2(N))  # here
    return s
