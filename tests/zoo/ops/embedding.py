# honest: a block of columns of one index a program
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(table_ptr, index_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    source = tl.load(index_ptr + row)
    tl.store(y_ptr + row * N + cols, tl.load(table_ptr + source * N + cols, mask=mask), mask=mask)


def embedding_triton(table, index):
    M, N = index.shape[0], table.shape[1]
    y = torch.empty((M, N), dtype=table.dtype, device=table.device)
    if M:
        BLOCK = min(triton.next_power_of_2(N), 4096)
        _kernel[(M, triton.cdiv(N, BLOCK))](table, index, y, N, BLOCK=BLOCK)
    return y
