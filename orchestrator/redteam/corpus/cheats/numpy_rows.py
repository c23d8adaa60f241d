# cheat: numpy | expect: FORBIDDEN | runtime: FALLBACK
import numpy as np
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    a = x.float().cpu().numpy().astype(np.float64)
    y = a / np.sqrt((a * a).mean(-1, keepdims=True) + eps) * w.float().cpu().numpy()
    return torch.from_numpy(y).to(x.dtype).to(x.device)
