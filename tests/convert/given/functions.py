"""Functions, written for the tests."""

import torch


def logsumexp(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """log(sum(exp(x))) over a dim."""
    m = x.amax(dim=dim, keepdim=True)
    return (x - m).exp().sum(dim=dim).log() + m.squeeze(dim)


def selective_scan(x, delta, A, B, C, D):
    """h' = exp(delta A) h + delta B x;  y = C h + D x. x, delta: (b, l, d), A: (d, n), B, C: (b, l, n), D: (d,)."""
    h = torch.zeros(x.shape[0], x.shape[2], A.shape[1], dtype=x.dtype, device=x.device)
    results = []
    for step in range(x.shape[1]):
        grow = torch.exp(delta[:, step, :, None] * A)
        h = grow * h + (delta[:, step] * x[:, step])[..., None] * B[:, step, None, :]
        results.append((h * C[:, step, None, :]).sum(-1))
    return torch.stack(results, 1) + x * D
