"""What a call returned, as the results that it is."""

from __future__ import annotations

from typing import Any


def several(returned: Any) -> tuple[Any, ...]:
    """One result or a tuple of them, as a tuple. A list is no such tuple: it is one result, and a wrong one."""
    return returned if isinstance(returned, tuple) else (returned,)
