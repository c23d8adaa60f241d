# honest: tensor descriptors where rows are aligned, pointers elsewhere
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _rms_described(x_desc, w_ptr, y_desc, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = x_desc.load([row, 0]).to(tl.float32)
    cols = tl.arange(0, BLOCK)[None, :]
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / N + eps)
    y_desc.store([row, 0], (x * rstd[:, None] * w).to(y_desc.dtype))


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(N)
    aligned = N * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0 and y.data_ptr() % 16 == 0
    if aligned and BLOCK * x.element_size() >= 16 and BLOCK <= 256:
        x_desc = TensorDescriptor.from_tensor(x, [1, BLOCK])
        y_desc = TensorDescriptor.from_tensor(y, [1, BLOCK])
        _rms_described[(M,)](x_desc, w, y_desc, N, eps, BLOCK=BLOCK)
    else:
        _rms[(M,)](x, w, y, N, eps, BLOCK=BLOCK)
    return y
