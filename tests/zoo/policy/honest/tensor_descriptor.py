# honest: tensor descriptors made on the host
import torch
import triton
import triton.language as tl


from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _t(x_desc, y_desc, BM: tl.constexpr, BN: tl.constexpr):
    y_desc.store([tl.program_id(0) * BM, 0], x_desc.load([tl.program_id(0) * BM, 0]))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    block = [16, triton.next_power_of_2(N)]
    a = TensorDescriptor.from_tensor(x, block)
    b = TensorDescriptor(y, y.shape, y.stride(), block)
    _t[(triton.cdiv(M, block[0]),)](a, b, BM=block[0], BN=block[1])
    return y
