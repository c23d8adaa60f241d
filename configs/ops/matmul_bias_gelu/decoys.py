"""Faults that only a product of matrices with an epilogue can have; the general ones are made by the judge."""

import torch
from ref import matmul_bias_gelu_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _gelu(z):
    return torch.nn.functional.gelu(z, approximate="tanh")


def product_rounded_first(a, b, bias):
    """The product is rounded to the dtype of a before the bias is added."""
    product = (_wide(a) @ _wide(b)).to(a.dtype)
    return _gelu(_wide(product) + _wide(bias)).to(a.dtype)


def bias_after_the_gelu(a, b, bias):
    """The bias is added to the GELU of the product."""
    return (_gelu(_wide(a) @ _wide(b)) + _wide(bias)).to(a.dtype)


def bias_along_the_rows(a, b, bias):
    """The bias of the row and not of the column, as far as there is one."""
    rows = torch.arange(a.shape[0], device=a.device) % max(len(bias), 1)
    return _gelu(_wide(a) @ _wide(b) + (_wide(bias)[rows].unsqueeze(1) if len(bias) else 0)).to(a.dtype)


def bias_of_the_first_tile(a, b, bias):
    """The bias is read from its beginning for each tile of 16 columns."""
    columns = torch.arange(len(bias), device=bias.device) % 16
    return matmul_bias_gelu_ref(a, b, bias[columns])


def bias_once_a_block_of_k(a, b, bias):
    """The bias is added within the loop over K."""
    return matmul_bias_gelu_ref(a, b, _wide(bias) * max(-(-a.shape[1] // 32), 1))


def gelu_by_erf(a, b, bias):
    """The exact GELU, 5e-4 away at most."""
    return torch.nn.functional.gelu(_wide(a) @ _wide(b) + _wide(bias)).to(a.dtype)


def relu_instead(a, b, bias):
    """Another activation."""
    return (_wide(a) @ _wide(b) + _wide(bias)).relu().to(a.dtype)


def whole_blocks_of_k_alone(a, b, bias):
    """The loop over K ends with the last whole block of 32: the tail does not count."""
    kept = max(a.shape[1] // 32 * 32, min(a.shape[1], 32))
    return matmul_bias_gelu_ref(a[:, :kept], b[:kept], bias)


def accumulated_in_the_dtype_of_a(a, b, bias):
    """The sum is rounded to the dtype of a after each block of K."""
    total = _wide(a).new_zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 32):
        total = total + _wide(a[:, start : start + 32]) @ _wide(b[start : start + 32])
        total = total.to(a.dtype).to(total.dtype)
    return _gelu(total + _wide(bias)).to(a.dtype)


def nothing_for_no_k(a, b, bias):
    """Zeros where K is 0, and not the GELU of the bias."""
    c = matmul_bias_gelu_ref(a, b, bias)
    return c if a.shape[1] else torch.zeros_like(c)
