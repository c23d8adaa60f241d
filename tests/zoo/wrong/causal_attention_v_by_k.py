# wrong: the last stride of v is taken from k | shown by: alone
import torch
import triton
import triton.language as tl


@triton.jit
def _attn(q_ptr, k_ptr, v_ptr, len_ptr, y_ptr, T, HQ, G, scale, qb, qh, qt, qd, kb, kh, kt, kd, vb, vh, vt, vd,
          D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0) * BM
    bh = tl.program_id(1).to(tl.int64)
    b = bh // HQ
    h = bh % HQ
    kvh = h // G
    length = tl.load(len_ptr + b)
    rows = (start + tl.arange(0, BM)).to(tl.int64)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + b * qb + h * qh + rows[:, None] * qt + d[None, :] * qd, mask=rows[:, None] < length, other=0.0)
    
    m = tl.full((BM,), -1e30, dtype=tl.float32)
    l = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    end = tl.minimum(start + BM, length)
    for j in range(0, end, BN):
        cols = (j + tl.arange(0, BN)).to(tl.int64)
        k = tl.load(k_ptr + b * kb + kvh * kh + cols[None, :] * kt + d[:, None] * kd, mask=cols[None, :] < length, other=0.0)
        v = tl.load(v_ptr + b * vb + kvh * vh + cols[:, None] * vt + d[None, :] * vd, mask=cols[:, None] < length, other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where((cols[None, :] <= rows[:, None]) & (cols[None, :] < length), s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    y = acc / l[:, None]
    y = tl.where(rows[:, None] < length, y, 0.0)
    tl.store(y_ptr + (bh * T + rows[:, None]) * D + d[None, :], y.to(y_ptr.dtype.element_ty), mask=rows[:, None] < T)


def causal_attention_triton(q, k, v, lengths):
    B, HQ, T, D = q.shape
    y = torch.empty((B, HQ, T, D), dtype=q.dtype, device=q.device)
    if B == 0 or T == 0:
        return y
    G = HQ // k.shape[1]
    
    _attn[(triton.cdiv(T, 32), B * HQ)](q, k, v, lengths, y, T, HQ, G, D ** -0.5, q.stride(0), q.stride(1), q.stride(2), q.stride(3), k.stride(0), k.stride(1), k.stride(2), k.stride(3), v.stride(0), v.stride(1), v.stride(2), k.stride(3), D=D, BM=32, BN=32)
    return y
