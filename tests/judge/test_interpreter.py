"""Each fault of Triton's interpreter is shown without the repair, and the right result with it.

A fault needs a process of its own, because a repair stays: the zoo's file is run twice, by this file as a script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ZOO = HERE.parent / "zoo" / "interpreter"


@cache
def outcomes(name: str, repaired: bool) -> dict[str, str]:
    """What each `case_*` function of a zoo file came to: "" when it held, else how it failed."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(HERE.parents[1])}
    command = [sys.executable, __file__, str(ZOO / f"{name}.py"), str(int(repaired))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answer


def cases() -> list[Any]:
    found = []
    for path in sorted(ZOO.glob("*.py")):
        names = [line.split("(")[0][4:] for line in path.read_text().splitlines() if line.startswith("def case_")]
        found += [pytest.param(path.stem, name, id=f"{path.stem}-{name[5:]}") for name in names]
    return found


@pytest.mark.parametrize(("name", "case"), cases())
def test_right_with_the_repair(name: str, case: str) -> None:
    assert outcomes(name, True)[case] == ""


@pytest.mark.parametrize(("name", "case"), cases())
def test_the_fault_shows_without_the_repair(name: str, case: str) -> None:
    """A case named `_controls` was right before and must be left alone; `_sometimes`: some versions have the fault."""
    if case.endswith("_controls"):
        assert outcomes(name, False)[case] == ""
    elif not case.endswith("_sometimes"):
        assert outcomes(name, False)[case] != "", "no fault to repair: the versions of the repair can be narrowed"


def test_what_the_test_file_makes_its_inputs_with_is_met_on_the_cpu() -> None:
    """Its values by rows come from torch.logspace, on the device that a tensor says."""
    code = (
        "import torch\nfrom orchestrator.judge import interpreter\ninterpreter.stand_in()\n"
        "x = torch.randn(3, 4)\nprint((x * torch.logspace(-2, 2, 3, device=x.device)[:, None]).shape)"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "torch.Size([3, 4])", done.stderr[-2000:]


def main() -> None:
    """Runs a zoo file's cases in this process and prints the outcomes as JSON."""
    from orchestrator.judge import interpreter

    path, repaired = Path(sys.argv[1]), sys.argv[2] == "1"
    if repaired:
        interpreter.repair()
        interpreter.stand_in()
    scope: dict[str, Any] = {}
    sys.path.insert(0, str(path.parent))
    module = __import__(path.stem)
    scope = vars(module)
    print(json.dumps({name: outcome(scope[name]) for name in list(scope) if name.startswith("case_")}))


def outcome(case: Any) -> str:
    try:
        case()
    except Exception as error:  # noqa: BLE001 - whatever it raises is the outcome
        return f"{type(error).__name__}: {error}"[:400] or "failed"
    return ""


if __name__ == "__main__":
    main()
