# honest: an online softmax over blocks of keys, a block of queries of one head a program
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, y_ptr, HEADS, G, T, factor,
    q_batch, q_head, q_row, q_column, k_batch, k_head, k_row, k_column, v_batch, v_head, v_row, v_column,
    D: tl.constexpr, BLOCK: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(1).to(tl.int64)
    batch, head = at // HEADS, at % HEADS
    length = tl.load(lengths_ptr + batch)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, D)[None, :].to(tl.int64)
    here = (rows < length)[:, None]
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + head // G * k_head
    v_ptr += batch * v_batch + head // G * v_head
    q = tl.load(q_ptr + rows[:, None].to(tl.int64) * q_row + cols * q_column, mask=here, other=0.0)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    y = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK, length), KEYS):
        keys = start + tl.arange(0, KEYS)
        there = (keys < length)[:, None]
        k = tl.load(k_ptr + keys[:, None].to(tl.int64) * k_row + cols * k_column, mask=there, other=0.0)
        v = tl.load(v_ptr + keys[:, None].to(tl.int64) * v_row + cols * v_column, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * factor
        s = tl.where((keys[None, :] <= rows[:, None]) & (keys < length)[None, :], s, float("-inf"))
        now = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - now[:, None])
        shrunk = tl.exp(largest - now)
        total = total * shrunk + tl.sum(p, axis=1)
        y = tl.dot(p.to(v.dtype), v, y * shrunk[:, None], input_precision="ieee")
        largest = now
    y = tl.where(here, y / total[:, None], 0.0)
    out = y_ptr + (at * T + rows[:, None]) * D + cols
    tl.store(out, y.to(y_ptr.dtype.element_ty), mask=(rows < T)[:, None])


def causal_attention_triton(q, k, v, lengths):
    B, HEADS, T, D = q.shape
    y = torch.empty((B, HEADS, T, D), dtype=q.dtype, device=q.device)
    if B:
        grid = (triton.cdiv(T, 64), B * HEADS)
        _kernel[grid](
            q, k, v, lengths, y, HEADS, HEADS // k.shape[1], T, D**-0.5,
            q.stride(0), q.stride(1), q.stride(2), q.stride(3), k.stride(0), k.stride(1), k.stride(2), k.stride(3),
            v.stride(0), v.stride(1), v.stride(2), v.stride(3), D=D, BLOCK=64, KEYS=32,
        )  # fmt: skip
    return y
