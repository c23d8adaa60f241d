# padding-in-sum high: the same, block by block
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(z_ptr, largest_ptr, loss_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.load(largest_ptr + row)
    total = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + row * V + cols, mask=cols < V, other=0.0).to(tl.float32)
        total += tl.sum(tl.exp(z - largest), axis=0)  # here
    tl.store(loss_ptr + row, tl.log(total) + largest)


def entry(z, largest):
    M, V = z.shape
    loss = torch.empty(M, dtype=torch.float32, device=z.device)
    _kernel[(M,)](z, largest, loss, V, BLOCK=1024)
    return loss
