"""The device runs kernels of this file, and beside them nothing but fills and copies.

Only on a GPU. Rests on evidence: the trace is made in the candidate's process.
Catches: a library's kernel (cuBLAS, cuDNN, torch's own) that neither the dispatcher nor Triton saw; a call in which no
kernel of the file reaches the device, such as the replay of an empty graph.
Cannot catch: a process that lies about its trace; a kernel of the file that copies what was computed elsewhere earlier.
"""

from __future__ import annotations

import re

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import listed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.ways import Way
from orchestrator.records import Status

_FILLS_AND_COPIES = re.compile(r"^cuMem(set|cpy)|FillFunctor|copy_kernel_cuda|arange_cuda_out")


def device_trace(series: Series) -> None:
    """Raises CandidateFailed naming the first kernel that is not the file's own."""
    if series.device == "cpu":
        return
    traced = series.proxy.ask_in(Way.TRACED, series.first)
    if missing := traced.returned.evidence.get("trace_missing"):
        series.notes.append(f"no device trace: {missing!s:.160}")
        return
    ran = listed(traced.returned.evidence, "trace")
    for found in ran:
        name = str(found.get("name"))
        if not found.get("own") and not _FILLS_AND_COPIES.search(name):
            raise CandidateFailed(Status.FALLBACK, f"the device ran a kernel that is not of this file: {name:.160}")
    if any(result.numel() for result in traced.results) and not any(found.get("own") for found in ran):
        raise CandidateFailed(Status.FALLBACK, "the device ran no kernel of this file in this call")
