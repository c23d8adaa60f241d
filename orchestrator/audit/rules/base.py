"""How a rule is declared: a function over the facts of a file that yields what it objects to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from orchestrator.audit.context import Context
from orchestrator.audit.findings import Hit, Part, Rule, Severity

Look: TypeAlias = Callable[[Context], Iterator[Hit]]

RULES: dict[str, tuple[Rule, Look]] = {}


def rule(id: str, severity: Severity, part: Part, title: str, *, why: str, repair: str) -> Callable[[Look], Look]:
    """Declare the function below as a rule."""

    def declared(look: Look) -> Look:
        if id in RULES:
            raise ValueError(f"two rules called {id}")
        RULES[id] = (Rule(id, severity, part, title, why, repair), look)
        return look

    return declared
