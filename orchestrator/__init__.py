"""An orchestrator in which a language model writes Triton kernels and a judge decides which of them may stay.

As a library: `from orchestrator import measure, run_op, verify`; see `library`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.library import measure, measure_run, run_op, verify

__version__ = "0.1.0"
__all__ = ["measure", "measure_run", "run_op", "verify"]


def __getattr__(name: str) -> Any:
    """The library's functions, imported when they are first asked for: `--help` does not wait for them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orchestrator import library

    return getattr(library, name)
