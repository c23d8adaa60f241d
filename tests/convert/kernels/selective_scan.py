import torch
import triton
import triton.language as tl


@triton.jit
def _scan(x_ptr, d_ptr, a_ptr, b_ptr, c_ptr, skip_ptr, y_ptr, T, L, E, BLOCK_L: tl.constexpr, BLOCK_E: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    lanes = tl.program_id(1) * BLOCK_L + tl.arange(0, BLOCK_L)
    states = tl.arange(0, BLOCK_E)
    lane, state = lanes < L, states < E
    both = lane[:, None] & state[None, :]
    a = tl.load(a_ptr + lanes[:, None] * E + states[None, :], mask=both, other=0.0).to(tl.float32)
    skip = tl.load(skip_ptr + lanes, mask=lane, other=0.0).to(tl.float32)
    h = tl.zeros((BLOCK_L, BLOCK_E), tl.float32)
    for t in range(T):
        at = (batch * T + t) * L + lanes
        x = tl.load(x_ptr + at, mask=lane, other=0.0).to(tl.float32)
        d = tl.load(d_ptr + at, mask=lane, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + (batch * T + t) * E + states, mask=state, other=0.0).to(tl.float32)
        c = tl.load(c_ptr + (batch * T + t) * E + states, mask=state, other=0.0).to(tl.float32)
        h = tl.exp(d[:, None] * a) * h + (d * x)[:, None] * b[None, :]
        y = tl.sum(tl.where(both, h * c[None, :], 0.0), axis=1) + x * skip
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=lane)


def selective_scan_triton(x, delta, A, B, C, D):
    """x, delta (K, T, L), A (L, E), B, C (K, T, E), D (L,): one float dtype, one device, contiguous."""
    K, T, L = x.shape
    E = A.shape[1]
    assert delta.shape == x.shape and B.shape == (K, T, E) and C.shape == B.shape and D.shape == (L,)
    assert x.dtype == delta.dtype == A.dtype == B.dtype == C.dtype == D.dtype
    assert x.device == A.device
    assert x.is_contiguous() and delta.is_contiguous() and A.is_contiguous() and B.is_contiguous() and C.is_contiguous()
    y = torch.empty_like(x)
    if K > 0 and L > 0:
        BLOCK_L = 16
        grid = (K, triton.cdiv(L, BLOCK_L))
        _scan[grid](x, delta, A, B, C, D, y, T, L, E, BLOCK_L=BLOCK_L, BLOCK_E=triton.next_power_of_2(max(E, 1)))
    return y
