"""GeGLU in its tanh form by the formula, in float32 (or in float64, for float64 inputs)."""

import math

import torch


def geglu_ref(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """y = gelu_tanh(gate) · up. gate, up: (M, N); y is contiguous, with gate's shape and dtype."""
    wide = torch.promote_types(gate.dtype, torch.float32)
    z = gate.to(wide)
    inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z * z * z)
    return (0.5 * z * (1 + torch.tanh(inner)) * up.to(wide)).to(gate.dtype).contiguous()


def make_inputs(case, inputs: dict, generator) -> dict:
    """Among large values one product that overflows float16 while its result is 0."""
    if case.values == "large" and inputs["gate"].numel():
        inputs["gate"][0, 0], inputs["up"][0, 0] = -3e4, 4
    return inputs
