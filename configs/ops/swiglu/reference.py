"""SwiGLU by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def swiglu_ref(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """y = gate · sigmoid(gate) · up. gate, up: (M, N); y is contiguous, with gate's shape and dtype."""
    wide = torch.promote_types(gate.dtype, torch.float32)
    z = gate.to(wide)
    return (z * (1.0 / (1.0 + torch.exp(-z))) * up.to(wide)).to(gate.dtype).contiguous()
