# honest: block pointers advanced through the row
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_block = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (row, 0), (1, BLOCK), (1, 0))
    y_block = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (row, 0), (1, BLOCK), (1, 0))
    w_block = tl.make_block_ptr(w_ptr, (1, N), (N, 1), (0, 0), (1, BLOCK), (1, 0))
    ahead = x_block
    total = tl.zeros([1], dtype=tl.float32)
    for _ in range(0, tl.cdiv(N, BLOCK)):
        x = tl.load(ahead, boundary_check=(1,), padding_option="zero").to(tl.float32)
        total += tl.sum(x * x, axis=1)
        ahead = tl.advance(ahead, (0, BLOCK))
    rstd = 1.0 / tl.sqrt(total / N + eps)
    for _ in range(0, tl.cdiv(N, BLOCK)):
        x = tl.load(x_block, boundary_check=(1,), padding_option="zero").to(tl.float32)
        w = tl.load(w_block, boundary_check=(1,), padding_option="zero").to(tl.float32)
        tl.store(y_block, (x * rstd[:, None] * w).to(y_ptr.dtype.element_ty), boundary_check=(1,))
        x_block, y_block = tl.advance(x_block, (0, BLOCK)), tl.advance(y_block, (0, BLOCK))
        w_block = tl.advance(w_block, (0, BLOCK))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, M, N, eps, BLOCK=4096)
    return y
