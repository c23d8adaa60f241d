"""The heap of a process that runs for days: large blocks go back to the system as soon as they are freed.

Owns one setting of glibc's allocator. Left alone, it takes the first large block that is freed as a sign that there
will be more, and keeps their like in its heap from then on. The interpreter has one such block, its table of interned
strings, into which pathlib puts each new name and which is copied every few hundred ops of a batch; about every second
copy found no place where the ones before had been, and the process grew by 2 MB that nothing used.
"""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
_LARGE_BYTES = 1 << 20


def give_back_large_blocks() -> None:
    """From now on, in the whole process. Another C library than glibc is left as it is."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
