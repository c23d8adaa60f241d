# honest: the maximum is subtracted within a where, which keeps lanes at minus infinity that have seen nothing yet
import torch
import triton
import triton.language as tl


@triton.jit
def _logsumexp(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, x)
        finite = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(top - finite) + tl.exp(x - finite)
        top = new
    m = tl.max(top, axis=0)
    finite = tl.where(m == float("-inf"), 0.0, m)
    lanes = tl.exp(tl.where(top == float("-inf"), float("-inf"), top - finite))
    tl.store(y_ptr + row, finite + tl.log(tl.sum(total * lanes, axis=0)))


def logsumexp_triton(x):
    M, N = x.shape
    y = torch.empty(M, dtype=torch.float32, device=x.device)
    _logsumexp[(M,)](x, y, N, BLOCK=1024)
    return y
