"""Dropout by the formula, with Philox 4x32 in integers of 64 bits; float32 (or float64, for float64 inputs)."""

import torch

LOW = 0xFFFFFFFF


def dropout_ref(x: torch.Tensor, p: float = 0.5, seed: int = 0) -> torch.Tensor:
    """y = x / (1 - p) where the generator's number for the element is at least p, else 0. x: (M, N); y is like x."""
    wide = torch.promote_types(x.dtype, torch.float32)
    u = uniform(seed, torch.arange(x.numel(), device=x.device)).view(x.shape)
    kept = u >= torch.tensor(p, dtype=torch.float32, device=x.device)
    return torch.where(kept, x.to(wide) / (1 - p), 0.0).to(x.dtype).contiguous()


def uniform(seed: int, offset: torch.Tensor) -> torch.Tensor:
    """Philox's first number for counter (offset, 0, 0, 0) and the seed as key: the magnitude of an int32, by 2^-31."""
    word = first_word(seed, offset)
    signed = torch.where(word >= 1 << 31, LOW - word, word)  # -x - 1 for a negative x
    return signed.to(torch.float32) * 4.6566127342e-10


def first_word(seed: int, offset: torch.Tensor) -> torch.Tensor:
    """The first of the four words that ten rounds make; the words are integers from 0 to before 2^32."""
    c0, c1, c2, c3 = offset & LOW, *torch.zeros((3, 1), dtype=torch.int64, device=offset.device)
    k0, k1 = seed & LOW, seed >> 32 & LOW
    for _ in range(10):
        high0, low0 = _product(0xD2511F53, c0)
        high1, low1 = _product(0xCD9E8D57, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + 0x9E3779B9 & LOW, k1 + 0xBB67AE85 & LOW
    return c0


def _product(factor: int, word: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The upper and the lower word of a product of two words: 64 bits, of which the sign is the first."""
    product = factor * word
    return product >> 32 & LOW, product & LOW
