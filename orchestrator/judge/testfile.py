"""The committed test file, executed in the judge with a proxy in place of the kernel.

The judge has no second copy of the truth: cases, inputs, reference, tolerances and comparison are the test file's
own. What is executed comes from the pristine export of the baseline; no byte of it can be the candidate's.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from orchestrator.errors import JudgeError

_NEEDED = ("cases", "telling", "holdouts", "make_inputs", "run", "exactly", "compare", "precision")


@contextmanager
def loaded(folder: Path, kernel: ModuleType) -> Iterator[ModuleType]:
    """The module of `folder`/test_correctness.py, with `kernel` and the folder's ref.py, while the context lasts."""
    kept = {name: sys.modules.pop(name, None) for name in (kernel.__name__, "ref", "test_correctness")}
    sys.modules[kernel.__name__] = kernel
    try:
        _load("ref", folder / "ref.py")
        yield _checked(_load("test_correctness", folder / "test_correctness.py"))
    finally:
        for name, module in kept.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def _checked(module: ModuleType) -> ModuleType:
    if missing := [name for name in _NEEDED if not callable(getattr(module, name, None))]:
        raise JudgeError(
            f"{module.__file__} defines no {', '.join(missing)}; a test file must define {', '.join(_NEEDED)}"
        )
    return module


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise JudgeError(f"{path} is missing from the job folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
