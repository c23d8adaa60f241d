"""Flash attention: inner function by stage, base-2 softmax, float32 scores, autotuned, grid over query tiles and heads."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def _inner(acc, l_i, m_i, q, k_base, v_base, s_kt, s_kd, s_vt, s_vd, offs_m, offs_d, length, lo, hi, scale,
           MASK: tl.constexpr, BN: tl.constexpr):
    for start_n in tl.range(lo, hi, BN):
        start_n = tl.multiple_of(start_n, BN)
        offs_n = start_n + tl.arange(0, BN)
        n_ok = offs_n < length
        kt = tl.load(k_base + offs_n[None, :].to(tl.int64) * s_kt + offs_d[:, None] * s_kd, mask=n_ok[None, :], other=0.0)
        s = tl.dot(q, kt, input_precision="ieee") * scale
        if MASK:
            s = tl.where((offs_m[:, None] >= offs_n[None, :]) & n_ok[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_base + offs_n[:, None].to(tl.int64) * s_vt + offs_d[None, :] * s_vd, mask=n_ok[:, None], other=0.0)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_new
    return acc, l_i, m_i


@triton.autotune(
    configs=[triton.Config({"BM": 64, "BN": 32}, num_warps=4, num_stages=s) for s in (2, 3)],
    key=["T", "D"],
)
@triton.jit
def _attn_fwd(Q, K, V, Len, Out, scale, H, G, T,
              s_qb, s_qh, s_qt, s_qd, s_kb, s_kh, s_kt, s_kd, s_vb, s_vh, s_vt, s_vd,
              D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    tl.static_assert(BM % BN == 0)
    start_m = tl.program_id(0)
    off_bh = tl.program_id(1)
    n_heads = H * G
    b = (off_bh // n_heads).to(tl.int64)
    h = (off_bh % n_heads).to(tl.int64)
    length = tl.load(Len + b)
    offs_m = start_m * BM + tl.arange(0, BM)
    offs_d = tl.arange(0, D).to(tl.int64)
    m_live = offs_m < length
    q = tl.load(Q + b * s_qb + h * s_qh + offs_m[:, None].to(tl.int64) * s_qt + offs_d[None, :] * s_qd,
                mask=m_live[:, None], other=0.0)
    k_base = K + b * s_kb + (h // G) * s_kh
    v_base = V + b * s_vb + (h // G) * s_vh
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    full = tl.minimum(start_m * BM, (length // BN) * BN)
    end = tl.minimum((start_m + 1) * BM, length)
    if start_m * BM < length:
        acc, l_i, m_i = _inner(acc, l_i, m_i, q, k_base, v_base, s_kt, s_kd, s_vt, s_vd, offs_m, offs_d, length,
                               0, full, scale, False, BN)
        acc, l_i, m_i = _inner(acc, l_i, m_i, q, k_base, v_base, s_kt, s_kd, s_vt, s_vd, offs_m, offs_d, length,
                               full, end, scale, True, BN)
    l_safe = tl.where(m_live, l_i, 1.0)
    out = tl.where(m_live[:, None], acc / l_safe[:, None], 0.0)
    o_ptrs = Out + ((b * n_heads + h) * T + offs_m[:, None]) * D + offs_d[None, :]
    tl.store(o_ptrs, out.to(Out.dtype.element_ty), mask=offs_m[:, None] < T)


def causal_attention_triton(q, k, v, lengths):
    B, HG, T, D = q.shape
    H = k.shape[1]
    assert D in {64, 128}
    assert q.shape[-1] == k.shape[-1] and k.shape[-1] == v.shape[-1]
    out = torch.empty((B, HG, T, D), dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    scale = math.log2(math.e) / math.sqrt(D)
    grid = lambda args: (triton.cdiv(T, args["BM"]), B * HG, 1)
    _attn_fwd[grid](q, k, v, lengths, out, scale, H, HG // H, T, *q.stride(), *k.stride(), *v.stride(), D=D)
    return out
