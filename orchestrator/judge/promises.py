"""Whether an op's reference is what its op.yaml promises: its shapes and dtypes, and the same result each time.

Owns the words for an op whose own files do not work, too: they name the file. Owns no decoy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge import testfile
from orchestrator.judge.checks.series import identical
from orchestrator.judge.results import several
from orchestrator.judge.timing.baselines import expression
from orchestrator.records import DecoyResult, Fate, OpCheckJob

RAISED = (Exception, SystemExit)  # what an author's code may end in; an exit of theirs is none of ours


class OwnFilesFail(Exception):
    """The op's own code raises where it must not. Says which file, and what it raised."""

    def __init__(self, what: str, error: BaseException, case: str = "") -> None:
        super().__init__(f"{what} raised {type(error).__name__}: {error}")
        self.result = broken(str(self), case)


def broken(detail: str, case: str = "") -> DecoyResult:
    """What is said of files with which nothing can be compared."""
    return DecoyResult("the op's own files", "everything is compared with them", Fate.BROKEN, case, None, detail)


@contextmanager
def own_files(job: OpCheckJob, kernel: ModuleType) -> Iterator[ModuleType]:
    """The op's test file, executed, and with it its reference.py. Raises OwnFilesFail where they cannot be."""
    with ExitStack() as stack:
        try:
            test = stack.enter_context(testfile.loaded(Path(job.folder), kernel))
        except RAISED as error:  # the author's file, executed
            raise OwnFilesFail("reference.py cannot be imported: it", error) from error
        yield test


def not_kept(
    job: OpCheckJob, reference: Callable[..., Any], case: Any, inputs: dict[str, torch.Tensor]
) -> DecoyResult | None:
    """What the reference does otherwise than promised on one case; None where it does all."""
    results, again = (_results(job, reference, case, inputs) for _ in range(2))
    if wrong := [type(one).__name__ for one in results if not isinstance(one, torch.Tensor)]:
        return broken(f"reference.py: {job.reference} returns {wrong[0]} where a tensor is expected", case.name)
    got = [(tuple(one.shape), str(one.dtype).removeprefix("torch.")) for one in results]
    promised = [_promised(job, name, inputs, case.dims) for name in job.outputs]
    if got != promised:
        detail = f"op.yaml (outputs) promises {promised}, and {job.reference} in reference.py gives {got}"
        return broken(detail, case.name)
    if not identical(results, again):
        return broken(f"reference.py: {job.reference} gives another result when it is called again", case.name)
    return None


def other_baseline(job: OpCheckJob, test: ModuleType, case: Any, inputs: dict[str, torch.Tensor]) -> DecoyResult | None:
    """The first baseline that computes something else than the reference on one case, as a measurement compares them:
    a kernel must not be called faster or slower than what does another thing."""
    want = several(getattr(test, job.reference)(**inputs, **case.parameters))
    for name, call in job.baselines.items():
        where = f"op.yaml (bench.baselines.{name})"
        try:
            got = several(expression(call)(**inputs, **case.parameters))
            right = len(got) == len(want) and all(
                test.compare(one, other, case.dtype).passed for one, other in zip(got, want, strict=True)
            )
        except RAISED as error:  # the author's code
            raise OwnFilesFail(where, error, case.name) from error
        if not right:
            return broken(f"{where}: it computes something else than the reference", case.name)
    return None


def _results(
    job: OpCheckJob, reference: Callable[..., Any], case: Any, inputs: dict[str, torch.Tensor]
) -> tuple[Any, ...]:
    try:
        results = reference(**inputs, **case.parameters)
    except RAISED as error:  # the author's code
        raise OwnFilesFail(f"reference.py: {job.reference}", error, case.name) from error
    return several(results)


def _promised(
    job: OpCheckJob, name: str, inputs: dict[str, torch.Tensor], dims: dict[str, int]
) -> tuple[tuple[int, ...], str]:
    sizes = [eval(size, {"__builtins__": {}}, dict(dims)) for size in job.outputs[name]]  # plain arithmetic
    dtype = job.output_dtypes[name]
    return tuple(sizes), str(inputs[dtype].dtype).removeprefix("torch.") if dtype in inputs else dtype
