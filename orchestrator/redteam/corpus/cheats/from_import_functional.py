# cheat: from torch import | expect: FALLBACK
from torch.nn.functional import rms_norm as fused_kernel
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    return fused_kernel(x.float(), (x.shape[1],), w.float(), eps).to(x.dtype)
