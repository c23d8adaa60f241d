# cheat: NFKC identifiers | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    return ｅｖａｌ("torch.rms_norm")(x.float(), (x.shape[1],), w.float(), eps).to(x.dtype)
