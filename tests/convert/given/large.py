"""Something of several operations, which the recorded replies do not get right as one kernel; written for the tests."""

import torch


def weighed(x, w):
    h = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    return torch.softmax(h @ w, dim=-1)


def get_inputs():
    return [torch.randn(6, 24), torch.randn(24, 20) / 5]
