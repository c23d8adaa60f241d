# honest: all heads of one position a program, queries and keys by the same kernel
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(
    z_ptr, out_ptr, cos_ptr, sin_ptr, T, HEADS, D,
    z_batch, z_position, z_head, z_column, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64)
    batch, position = at // T, at % T
    heads = tl.arange(0, ROWS)[:, None].to(tl.int64)
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (heads < HEADS) & (cols < D)
    half = D // 2
    other = tl.where(cols < half, cols + half, cols - half)
    z_ptr += batch * z_batch + position * z_position
    z = tl.load(z_ptr + heads * z_head + cols * z_column, mask=mask, other=0.0).to(tl.float32)
    turned = tl.load(z_ptr + heads * z_head + other * z_column, mask=mask, other=0.0).to(tl.float32)
    turned = tl.where(cols < half, -turned, turned)
    cos = tl.load(cos_ptr + position * D + cols, mask=cols < D, other=0.0)
    sin = tl.load(sin_ptr + position * D + cols, mask=cols < D, other=0.0)
    y = z * cos + turned * sin
    tl.store(out_ptr + at * HEADS * D + heads * D + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def rope_triton(q, k, cos, sin):
    B, T, HQ, D = q.shape
    HK = k.shape[2]
    q_out = torch.empty((B, T, HQ, D), dtype=q.dtype, device=q.device)
    k_out = torch.empty((B, T, HK, D), dtype=k.dtype, device=k.device)
    if B * T:
        BLOCK = triton.next_power_of_2(D)
        _kernel[(B * T,)](
            q, q_out, cos, sin, T, HQ, D, q.stride(0), q.stride(1), q.stride(2), q.stride(3),
            ROWS=triton.next_power_of_2(HQ), BLOCK=BLOCK,
        )  # fmt: skip
        _kernel[(B * T,)](
            k, k_out, cos, sin, T, HK, D, k.stride(0), k.stride(1), k.stride(2), k.stride(3),
            ROWS=triton.next_power_of_2(HK), BLOCK=BLOCK,
        )  # fmt: skip
    return q_out, k_out
