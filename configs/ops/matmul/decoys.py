"""Faults that only a product of matrices can have; the general ones are made by the judge."""

import torch
from ref import matmul_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _summed(a, b, width, after):
    """The product by blocks of K, with `after` applied to the sum after each."""
    total = _wide(a).new_zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], width):
        total = after(total + _wide(a[:, start : start + width]) @ _wide(b[start : start + width]))
    return total.to(a.dtype)


def whole_blocks_of_k_alone(a, b):
    """The loop over K ends with the last whole block of 32: the tail does not count."""
    kept = max(a.shape[1] // 32 * 32, min(a.shape[1], 32))
    return matmul_ref(a[:, :kept], b[:kept])


def accumulated_in_float16(a, b):
    """The sum is rounded to float16 after each block of K."""
    return _summed(a, b, 32, lambda total: total.to(torch.float16).to(total.dtype))


def accumulated_in_the_dtype_of_a(a, b):
    """The sum is rounded to the dtype of a after each block of K."""
    return _summed(a, b, 32, lambda total: total.to(a.dtype).to(total.dtype))


def only_the_last_block(a, b):
    """The accumulator is overwritten instead of added to."""
    last = max(a.shape[1] - 1, 0) // 32 * 32
    return matmul_ref(a[:, last:], b[last:])


def tail_of_a_wraps_around(a, b):
    """Rows beyond the last whole block of 16 are taken from the first ones, as a modulus of a wrong size does."""
    rows = torch.arange(a.shape[0], device=a.device)
    whole = a.shape[0] // 16 * 16
    return matmul_ref(a[torch.where(rows >= whole, (rows - whole) % max(whole, 1), rows)] if whole else a, b)


def b_transposed_where_it_can_be(a, b):
    """b is read with its strides exchanged."""
    return matmul_ref(a, b.t().contiguous().view(b.shape) if b.numel() else b)


def nothing_for_no_k(a, b):
    """Memory of before shows where K is 0."""
    return matmul_ref(a, b) if a.shape[1] else torch.full((a.shape[0], b.shape[1]), 7, dtype=a.dtype, device=a.device)


def first_2048_of_k(a, b):
    """K is held in one block of at most 2048 and not looped over."""
    return matmul_ref(a[:, :2048], b[:2048])
