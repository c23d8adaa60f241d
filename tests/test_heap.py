"""Where a large block lies once one has been freed: outside of the heap, or in it where nobody asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import ctypes, pathlib, sys
from orchestrator import heap
if sys.argv[1] == "asked":
    heap.give_back_large_blocks()
del (first := [bytearray(8 << 20)])[:]
block = bytearray(2 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(block))
(lies,) = [line for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if line.endswith("[heap]")]
low, high = (int(bound, 16) for bound in lies.split()[0].split("-"))
print("in the heap" if low <= at < high else "outside")
"""


@pytest.mark.parametrize(("asked", "where"), [("asked", "outside"), ("not asked", "in the heap")])
def test_a_large_block_is_given_back_when_it_is_freed(asked: str, where: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == where
