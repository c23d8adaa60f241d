# honest: one allocation and nothing else
import torch


def rmsnorm_triton(x, w, eps=1e-6):
    return torch.empty_like(x)
