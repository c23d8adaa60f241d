# honest: autotune with a comprehension of configs, heuristics, a lambda grid
import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=n, num_stages=s) for b in (256, 1024) for n in (4, 8) for s in (1, 2)],
    key=["N"],
    reset_to_zero=["y_ptr"],
)
@triton.heuristics({"EVEN": lambda args: args["N"] % args["BLOCK"] == 0})
@triton.jit
def _t(x_ptr, w_ptr, y_ptr, sx, M, N, eps, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        c = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sx + c, mask=c < N, other=0.0).to(tl.float32)
        acc += x * x
    r = tl.rsqrt(tl.sum(acc, 0) / N + eps)
    tl.store(y_ptr + row, r)


def rmsnorm_triton(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """RMSNorm over the last dimension."""
    M, N = x.shape
    y = torch.empty_like(x)
    grid = lambda META: (triton.cdiv(M * N, META["BLOCK"]),)
    _t[grid](x, w, y, x.stride(0), M, N, eps)
    return y
