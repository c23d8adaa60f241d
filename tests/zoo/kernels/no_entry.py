# defines another function than the one asked for | expect: COMPILE_ERROR
import torch


def rmsnorm(x, w, eps=1e-6):
    return torch.empty_like(x)
