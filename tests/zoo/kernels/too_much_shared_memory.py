# needs more shared memory than a multiprocessor has | expect: COMPILE_ERROR | needs: gpu
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rows = tl.arange(0, 32)
    deep = tl.arange(0, 512)
    product = tl.zeros((32, 32), tl.float32)
    for k in range(0, N):  # more stages of tiles in flight than fit
        left = tl.load(w_ptr + rows[:, None] + deep[None, :] + k, mask=rows[:, None] + k < 0, other=0.0)
        right = tl.load(w_ptr + deep[:, None] + rows[None, :] + k, mask=rows[None, :] + k < 0, other=0.0)
        product += tl.dot(left, right, input_precision="tf32")
    extra = tl.sum(tl.sum(product, axis=0), axis=0) * 0
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w + extra).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N), num_stages=8)
    return y
