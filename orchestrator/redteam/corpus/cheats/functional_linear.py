# cheat: torch.nn.functional | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide, N = x.float(), x.shape[1]
    var = torch.nn.functional.linear(wide * wide, torch.ones(1, N)) / N
    return (wide / torch.sqrt(var + eps) * w.float()).to(x.dtype)
