# cheat: torch under an alias | expect: FORBIDDEN | runtime: FALLBACK
import torch
import torch.nn.functional as tl
import triton


def rmsnorm_triton(x, w, eps=1e-6):
    y = tl.rms_norm(x.float(), (x.shape[1],), w.float(), eps)
    return y.to(x.dtype)
