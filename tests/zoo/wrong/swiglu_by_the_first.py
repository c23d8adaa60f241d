# wrong: a contiguous gate says that up is contiguous too | shown by: alone1
import torch
import triton
import triton.language as tl


@triton.jit
def _flat(g_ptr, u_ptr, y_ptr, total, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < total
    g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(u_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + offs, (g / (1.0 + tl.exp(-g)) * u).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _strided(g_ptr, u_ptr, y_ptr, N, gr, gc, ur, uc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        mask = cols < N
        g = tl.load(g_ptr + row * gr + cols * gc, mask=mask, other=0.0).to(tl.float32)
        u = tl.load(u_ptr + row * ur + cols * uc, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + cols, (g / (1.0 + tl.exp(-g)) * u).to(y_ptr.dtype.element_ty), mask=mask)


def swiglu_triton(gate, up):
    M, N = gate.shape
    y = torch.empty((M, N), dtype=gate.dtype, device=gate.device)
    if M == 0:
        return y
    if gate.is_contiguous():
        total = M * N
        _flat[(triton.cdiv(total, 1024),)](gate, up, y, total, BLOCK=1024)
    else:
        _strided[(M,)](gate, up, y, N, gate.stride(0), gate.stride(1), up.stride(0), up.stride(1), BLOCK=1024)
    return y
