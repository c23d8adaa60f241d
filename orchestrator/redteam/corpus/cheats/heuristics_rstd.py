# cheat: torch in heuristics | expect: FALLBACK
import torch
import triton
import triton.language as tl


def _block(args):
    args["r_ptr"].copy_((args["x_ptr"].float().square().mean(-1) + args["eps"]).rsqrt())
    return triton.next_power_of_2(args["N"])


@triton.heuristics({"BLOCK": _block})
@triton.jit
def _scale(x_ptr, w_ptr, r_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + c, (x * tl.load(r_ptr + row) * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, rstd = torch.empty_like(x), torch.empty((M,), dtype=torch.float32, device=x.device)
    _scale[(M,)](x, w, rstd, y, N, eps)
    return y
