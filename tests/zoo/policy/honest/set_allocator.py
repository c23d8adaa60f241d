# honest: an allocator for descriptors made in a kernel | notes: 1
import torch
import triton
import triton.language as tl
from typing import Optional


def _alloc(size: int, alignment: int, stream: Optional[int]):
    return torch.empty(size, device="cuda", dtype=torch.int8)


@triton.jit
def _t(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    b = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    b.store([tl.program_id(0) * BM, 0], a.load([tl.program_id(0) * BM, 0]))


def rmsnorm_triton(x, w, eps=1e-6):
    triton.set_allocator(_alloc)
    M, N = x.shape
    y = torch.empty_like(x)
    _t[(triton.cdiv(M, 16),)](x, y, M, N, BM=16, BN=triton.next_power_of_2(N))
    return y
