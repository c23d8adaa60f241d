"""What this machine gives the judge, told by a process of its own.

`python -m orchestrator.judge.facts stack|sandbox DEVICE` prints one JSON value and ends. `stack`: whether torch and
triton can be imported here and whether torch sees a GPU. `sandbox`: the pieces of the confinement, as `sandbox.probe`
finds them. Judges nothing and starts no candidate; whoever asks sets the time limit, because an import can take as
long as it likes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any


def stack() -> dict[str, Any]:
    """The versions that were imported and what torch says of the GPU, or the error of the import that failed."""
    module = "torch"
    try:
        import torch

        module = "triton"
        import triton.language
    except Exception as error:  # noqa: BLE001 - a broken installation raises what it likes, and that is the answer
        return {"failed": module, "error": f"{type(error).__name__}: {error}"}
    return {
        "torch": torch.__version__,
        "triton": triton.__version__,
        "build": torch.version.cuda or torch.version.hip or "CPU",
        "gpu": torch.cuda.is_available(),
    }


def sandbox(*, device: bool) -> list[dict[str, Any]]:
    """The pieces of the confinement on this machine."""
    from orchestrator.judge.sandbox import probe

    return [asdict(piece) for piece in probe(device=device)]


if __name__ == "__main__":
    print(json.dumps(stack() if sys.argv[1] == "stack" else sandbox(device=sys.argv[2] == "gpu")))
