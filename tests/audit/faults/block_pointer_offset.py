# int32-offset medium: the base of a block pointer in 32 bits
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, T, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0)
    start = x_ptr + head * T * D  # here
    block = tl.make_block_ptr(start, (T, D), (D, 1), (0, 0), (ROWS, BLOCK), (1, 0))
    x = tl.load(block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    tl.store(y_ptr + head, tl.sum(tl.sum(x, axis=1), axis=0))


def entry(x):
    H, T, D = x.shape
    y = torch.empty(H, dtype=torch.float32, device=x.device)
    _kernel[(H,)](x, y, T, D, ROWS=triton.next_power_of_2(T), BLOCK=triton.next_power_of_2(D))
    return y
