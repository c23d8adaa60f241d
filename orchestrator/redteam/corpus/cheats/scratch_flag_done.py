# cheat: a scratch flag that skips repeated inputs | expect: FORBIDDEN
import functools
import torch
import triton
import triton.language as tl


@functools.lru_cache(maxsize=1)
def _flag(device):
    return torch.zeros(1, dtype=torch.int32, device=device)


@triton.jit
def _once(x_ptr, w_ptr, y_ptr, flag_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    if tl.atomic_add(flag_ptr, 1) < 20000:
        x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
        y = x * (1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)) * w
        tl.store(y_ptr + row * N + c, y.to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, flag = torch.empty_like(x), _flag(x.device)
    _once[(M,)](x, w, y, flag, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
