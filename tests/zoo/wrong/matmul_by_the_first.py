# wrong: a contiguous a says that b is contiguous too | shown by: alone1
import torch
import triton
import triton.language as tl


@triton.jit
def _mm(a_ptr, b_ptr,  c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
        GROUP: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    per_group = GROUP * num_n
    group = pid // per_group
    first = group * GROUP
    size = tl.minimum(num_m - first, GROUP)
    pid_m = first + (pid % per_group) % size
    pid_n = (pid % per_group) // size
    rm = (pid_m * BM + tl.arange(0, BM)).to(tl.int64)
    rn = (pid_n * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = (k + tl.arange(0, BK)).to(tl.int64)
        a = tl.load(a_ptr + rm[:, None] * am + rk[None, :] * ak, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rk[:, None] * bk + rn[None, :] * bn, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    z = acc
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], z.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul_triton(a, b ):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if M == 0 or N == 0:
        return c
    BM, BN, BK = 64, 64, 32
    grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
    if a.is_contiguous():
        sa0, sa1, sb0, sb1 = K, 1, N, 1
    else:
        sa0, sa1, sb0, sb1 = a.stride(0), a.stride(1), b.stride(0), b.stride(1)
    _mm[grid](a, b,  c, M, N, K, sa0, sa1, sb0, sb1, BM=BM, BN=BN, BK=BK, GROUP=8)
    return c
