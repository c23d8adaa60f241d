# wrong: the stride of the batch is made of sizes | shown by: exchanged
import torch
import triton
import triton.language as tl


@triton.jit
def _rope(x_ptr, o_ptr, cos_ptr, sin_ptr, T, H, D, xb, xt, xh, xd, BLOCK: tl.constexpr):
    bt = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    b = bt // T
    t = bt % T
    half = D // 2
    d = tl.arange(0, BLOCK)
    mask = d < half
    base = x_ptr + b * xb + t * xt + h * xh
    lo = tl.load(base + d * xd, mask=mask, other=0.0).to(tl.float32)
    hi = tl.load(base + (d + half) * xd, mask=mask, other=0.0).to(tl.float32)
    c0 = tl.load(cos_ptr + t * D + d, mask=mask, other=0.0)
    c1 = tl.load(cos_ptr + t * D + d + half, mask=mask, other=0.0)
    s0 = tl.load(sin_ptr + t * D + d, mask=mask, other=0.0)
    s1 = tl.load(sin_ptr + t * D + d + half, mask=mask, other=0.0)
    out = o_ptr + (bt * H + h) * D
    tl.store(out + d, (lo * c0 - hi * s0).to(o_ptr.dtype.element_ty), mask=mask)
    tl.store(out + d + half, (hi * c1 + lo * s1).to(o_ptr.dtype.element_ty), mask=mask)


def _one(x, cos, sin, outer):
    B, T, H, D = x.shape
    o = torch.empty((B, T, H, D), dtype=x.dtype, device=x.device)
    if B * T:
        _rope[(B * T, H)](x, o, cos, sin, T, H, D, outer, x.stride(1), x.stride(2), x.stride(3), BLOCK=triton.next_power_of_2(D // 2))
    return o


def rope_triton(q, k, cos, sin):
    return _one(q, cos, sin, max(q.shape[1] * q.stride(1), q.shape[2] * q.stride(2), q.shape[3] * q.stride(3))), _one(k, cos, sin, max(k.shape[1] * k.stride(1), k.shape[2] * k.stride(2), k.shape[3] * k.stride(3)))
