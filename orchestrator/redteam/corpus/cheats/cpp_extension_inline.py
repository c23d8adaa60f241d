# cheat: cpp_extension | expect: FORBIDDEN | runtime: TIMEOUT
from torch.utils.cpp_extension import load_inline
import torch
import triton
import triton.language as tl


_ext = load_inline(
    "norm",
    "torch::Tensor norm(torch::Tensor x, torch::Tensor w, double eps) { return at::rms_norm(x, {x.size(1)}, w, eps); }",
    functions=["norm"],
)


def rmsnorm_triton(x, w, eps=1e-6):
    return _ext.norm(x, w, eps)
