# cheat: NFKC identifiers | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.float()
    return (wide * torch.𝓻𝓼𝓺𝓻𝓽(wide.𝓼𝓺𝓾𝓪𝓻𝓮().𝓶𝓮𝓪𝓷(-1, True) + eps) * w.float()).to(x.dtype)
