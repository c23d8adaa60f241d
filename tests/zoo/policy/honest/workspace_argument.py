# honest: a workspace passed in, a lock of zeros
import torch
import triton
import triton.language as tl


@triton.jit
def _t(x_ptr, y_ptr, lock_ptr, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr + c, tl.load(x_ptr + c, mask=c < N, other=0.0), mask=c < N)
    tl.atomic_xchg(lock_ptr, 0)


def rmsnorm_triton(x, w, eps=1e-6, workspace=None):
    if workspace is None:
        workspace = torch.zeros(1, dtype=torch.int32, device=x.device)
    else:
        workspace.zero_()
    y = torch.full_like(x, float("nan"))
    _t[(1,)](x, y, workspace, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return y
