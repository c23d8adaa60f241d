"""What Triton's interpreter cannot do, told apart from what a kernel does wrong.

Owns the error and the predicate. The predicate runs in the candidate's process, so its answer may turn a verdict into
"cannot be judged without a GPU", never into a pass.
"""

from __future__ import annotations

import traceback
from pathlib import Path

import triton

_TRITON = str(Path(triton.__file__).parent)
_DEEPEST = 20  # links of a chain of errors that are looked at


class NotInterpretable(NotImplementedError):
    """The kernel uses something that has no meaning without a GPU, or none that is known here."""


def is_limit(error: BaseException) -> str | None:
    """What the interpreter lacks, in words, when that is why `error` was raised; None when the kernel is at fault."""
    for link in _chain(error):
        if isinstance(link, NotInterpretable):
            return str(link)
        if isinstance(link, NotImplementedError) and _raised_in_triton(link):
            return str(link) or "not implemented by Triton's interpreter"
        if isinstance(link, AttributeError) and type(link.obj).__name__ == "InterpreterBuilder":
            return f"Triton's interpreter has no {link.name}"
    return None


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(chain) < _DEEPEST:
        chain.append(link)
        link = link.__cause__ or link.__context__
    return chain


def _raised_in_triton(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_TRITON)
