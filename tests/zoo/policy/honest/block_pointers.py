# honest: block pointers and tensor descriptors
import torch
import triton
import triton.language as tl


@triton.jit
def _t(x_ptr, y_ptr, M, N, sx, BM: tl.constexpr, BN: tl.constexpr):
    p = tl.make_block_ptr(x_ptr, (M, N), (sx, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    q = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    tl.store(q, tl.load(p, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0, 1))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    BM = 16
    _t[(triton.cdiv(M, BM), 1, 1)](x, y, M, N, x.stride(0), BM=BM, BN=triton.next_power_of_2(N))
    return y
