# honest: a tile of the result a program, bias and GELU before it is stored
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        along = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask = (rows < M) & (along[None, :] < K)
        b_mask = (along[:, None] < K) & (cols < N)
        a = tl.load(a_ptr + rows * a_row + along[None, :] * a_column, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + along[:, None] * b_row + cols * b_column, mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    z = total + tl.load(bias_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (z + 0.044715 * z * z * z)
    y = z / (1.0 + tl.exp(-2.0 * inner))  # (1 + tanh z) / 2 is the sigmoid of 2z
    tl.store(c_ptr + rows * N + cols, y.to(c_ptr.dtype.element_ty), mask=(rows < M) & (cols < N))


def matmul_bias_gelu_triton(a, b, bias):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if M and N:
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        _kernel[grid](
            a, b, bias, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
        )  # fmt: skip
    return c
