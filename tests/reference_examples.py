"""The examples of prompts/references, and what each is to compute. As a script: run them all in Triton's interpreter.

Each is described as an op is, so that the judge can take them too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGES = Path(__file__).parent.parent / "prompts" / "references"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """`expected` is an expression over the arguments, widened, and torch. Shapes are in M, N and K."""

    function: str
    inputs: dict[str, tuple[str, ...]]
    result: tuple[str, ...]
    expected: str
    parameters: str = ""


EXAMPLES = {
    "masking": Example("spread", {"x": ("M", "N")}, ("M",), "x.amax(-1) - x.amin(-1)"),
    "logsumexp": Example("logmeanexp", {"x": ("M", "N")}, ("M",), "x.logsumexp(-1) - math.log(x.shape[1])"),
    "online_softmax": Example(
        "weighted",
        {"scores": ("M", "N"), "values": ("M", "N")},
        ("M",),
        "(scores.softmax(-1) * values).sum(-1)",
    ),
    "semiring": Example("running_max", {"x": ("M", "N")}, ("M", "N"), "x.cummax(-1).values"),
    "ring_buffer": Example(
        "echo",
        {"x": ("M", "K")},
        ("M", "K"),
        "sum(gain**i * torch.nn.functional.pad(x, (i * delay, 0))[:, : x.shape[1]] for i in range(x.shape[1]))",
        "delay=3, gain=-0.5",
    ),
    "tiles": Example("against", {"a": ("M", "K"), "b": ("N", "K")}, ("M", "N"), "a @ b.T"),
    "split_reduction": Example("column_squares", {"x": ("M", "N")}, ("N",), "x.square().sum(0)"),
    "persistent": Example("centered", {"x": ("M", "N"), "w": ("N",)}, ("M", "N"), "(x - x.mean(-1, keepdim=True)) * w"),
}
_SIZES = (
    {"M": 5, "N": 130, "K": 37},
    {"M": 1, "N": 1, "K": 1},
    {"M": 35, "N": 34, "K": 16},
    {"M": 2, "N": 1030, "K": 7},
)


def code(page: str) -> str:
    """The example of a page."""
    (block,) = _BLOCK.findall((PAGES / f"{page}.md").read_text())
    return str(block)


def wrong(folder: Path) -> Iterator[str]:
    """Each example that differs from what it is to compute, by name and sizes; modules are written to `folder`."""
    import importlib
    import math

    import torch

    sys.path.insert(0, str(folder))
    torch.manual_seed(0)
    for page, example in EXAMPLES.items():
        (folder / f"example_{page}.py").write_text(code(page))
        entry = getattr(importlib.import_module(f"example_{page}"), example.function)
        parameters = eval(f"dict({example.parameters})")
        for sizes in _SIZES:
            inputs = {name: torch.randn([sizes[dim] for dim in shape]) - 3 for name, shape in example.inputs.items()}
            wide = {name: tensor.double() for name, tensor in inputs.items()}
            want = eval(example.expected, {"torch": torch, "math": math} | wide | parameters)
            got = entry(**inputs, **parameters)
            if got.shape != want.shape or not torch.allclose(got.double(), want, rtol=1e-5, atol=1e-4):
                yield f"{page} at {sizes}: {(got - want).abs().max().item():g} off"


if __name__ == "__main__":
    assert os.environ["TRITON_INTERPRET"] == "1"
    print("\n".join(wrong(Path(sys.argv[1]))) or "all right")
