# honest: split along N, the last program of a row finishes it
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, p_ptr, ticket_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row, part, parts = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(p_ptr + row * parts + part, tl.sum(x * x, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(ticket_ptr + row, 1, sem="acq_rel") == parts - 1:
        k = tl.arange(0, PARTS)
        total = tl.sum(tl.load(p_ptr + row * parts + k, mask=k < parts, other=0.0, volatile=True), axis=0)
        rstd = 1.0 / tl.sqrt(total / N + eps)
        for start in range(0, N, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + at, mask=at < N, other=0.0).to(tl.float32)
            tl.store(y_ptr + row * N + at, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=at < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    BLOCK = 8192
    parts = triton.cdiv(N, BLOCK)
    y = torch.empty_like(x)
    partial = torch.empty((M, parts), dtype=torch.float32, device=x.device)
    tickets = torch.zeros(M, dtype=torch.int32, device=x.device)
    _rms[(M, parts)](x, w, partial, tickets, y, N, eps, BLOCK=BLOCK, PARTS=triton.next_power_of_2(parts))
    return y
