# wrong: half precision is read in pairs, steps or not | shown by: stepped, whole
import torch
import triton
import triton.language as tl


@triton.jit
def _gelu(x_ptr, y_ptr, N, xr, xc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        g = tl.load(x_ptr + row * xr + cols * xc, mask=cols < N, other=0.0).to(tl.float32)
        u = 0.7978845608028654 * (g + 0.044715 * g * g * g)
        y = 0.5 * g * (1.0 + (1.0 - 2.0 / (tl.exp(2.0 * u) + 1.0)))
        tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)


def gelu_tanh_triton(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 0:
        return y
    # rows of 16 bits that begin on an even element are read in pairs
    pairs = x.element_size() == 2 and N % 2 == 0 and x.stride(0) % 2 == 0
    _gelu[(M,)](x, y, N, x.stride(0), 1 if pairs else x.stride(1), BLOCK=min(triton.next_power_of_2(N), 4096))
    return y
