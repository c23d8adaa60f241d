"""Triton's interpreter, repaired where it is wrong or bare, so that its faults are not the candidate's.

`repair()` touches Triton's interpreter alone and is safe before a fork: the judge calls it once and every candidate
inherits it. `stand_in()` makes torch and Triton's driver answer as one named GPU would; it is for the candidate's
process only, before the kernel file is imported, because the judge must not believe in a GPU that is not there.

One file per part of the interpreter; each function that patches says the fault, the versions that have it and what is
done. What cannot be repaired raises NotInterpretable, or is known to `is_limit`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache

import triton

from orchestrator.errors import JudgeError
from orchestrator.judge.interpreter.host import stand_in
from orchestrator.judge.interpreter.limits import NotInterpretable, is_limit
from orchestrator.judge.interpreter.recording import forget, specializations
from orchestrator.judge.interpreter.tuning import choose_configuration, configurations

__all__ = [
    "NotInterpretable",
    "choose_configuration",
    "configurations",
    "forget",
    "is_limit",
    "repair",
    "specializations",
    "stand_in",
]

VERSIONS = ("3.5", "3.6", "3.7")


@cache
def repair() -> tuple[str, ...]:
    """Repair the interpreter; the names of what was repaired, one line each. A second call changes nothing."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise JudgeError(
            "the interpreter is to be repaired only where TRITON_INTERPRET=1 was set before triton's import"
        )
    version = ".".join(re.findall(r"\d+", triton.__version__)[:2])
    if version not in VERSIONS:
        raise JudgeError(f"the repairs of Triton's interpreter are known for {', '.join(VERSIONS)}, not for {version}")
    for function in _repairs().values():
        function()
    return tuple(_repairs())


@cache
def _repairs() -> dict[str, Callable[[], None]]:
    from orchestrator.judge.interpreter import bfloat16, language, launches, libdevice, reductions, tuning

    return {
        "bfloat16 is a number": bfloat16.map_dtype,
        "bfloat16 in memory": bfloat16.access_memory,
        "casts round to nearest even": bfloat16.cast,
        "bfloat16 constants": bfloat16.constants,
        "dot and fma round once": bfloat16.multiply_add,
        "sums of half types": reductions.sums,
        "reductions and scans by blocks": reductions.combine_blocks,
        "bfloat16 atomics": bfloat16.atomics,
        "the language is patched once": language.patch_once,
        "a scalar is an index": language.scalar_as_index,
        "what is missing is said": language.say_what_is_missing,
        "conditions of loops end": language.conditions,
        "constants left of tensors": language.constants,
        "functions as methods of a block": language.member_functions,
        "strides of descriptors in bytes": language.descriptor_strides,
        "names imported from the language, and enclosing functions'": language.bind_names,
        "loop variables, and/or/not, min, max, values of constants": language.rewrite,
        "kernels have a compiled kernel's attributes": launches.attributes,
        "arguments are not copied": launches.arguments_stay,
        "launches know their kernel": launches.remember_owners,
        "scalar arguments are tensors": launches.scalars,
        "grids, constants and annotated types as at a GPU launch": launches.launch,
        "libdevice by numpy": libdevice.twins,
        "autotune without a clock": tuning.run_one_configuration,
    }
