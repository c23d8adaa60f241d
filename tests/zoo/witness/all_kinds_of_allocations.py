# honest: every way to allocate
import torch


def rmsnorm_triton(x, w, eps=1e-6):
    return (
        torch.empty_like(x.t()),
        torch.empty((3, 5), dtype=torch.float16),
        torch.empty_strided((3, 5), (8, 1)),
        x.new_empty((7,), dtype=torch.bfloat16),
        torch.zeros_like(x),
        torch.zeros(3, dtype=torch.int8),
        x.new_zeros((2, 2)),
        torch.ones(3, dtype=torch.bool),
        torch.full((2, 3), 1.5),
        torch.full((2, 3), 7),
        torch.full_like(x, 2.0),
        x.new_full((2,), 3.0),
        torch.empty((2, 3, 4, 5), memory_format=torch.channels_last),
        torch.empty(3, dtype=torch.complex64),
        torch.empty(3, dtype=torch.float8_e4m3fn),
    )
