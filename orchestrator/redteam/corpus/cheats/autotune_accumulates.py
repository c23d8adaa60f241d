# cheat: autotune in place | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (256, 512)], key=["N"])
@triton.jit
def _sums(x_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr + row, tl.sum(x * x, axis=0))  # every trial adds: reset_to_zero is missing


@triton.jit
def _scale(x_ptr, s_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    rstd = 1.0 / tl.sqrt(tl.load(s_ptr + row) / N + eps)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + c, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, s = torch.empty_like(x), torch.zeros((M,), dtype=torch.float32, device=x.device)
    _sums[lambda meta: (M, triton.cdiv(N, meta["BLOCK"]))](x, s, N)
    _scale[(M,)](x, s, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
