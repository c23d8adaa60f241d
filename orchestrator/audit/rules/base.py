"""How a rule is declared: a function over the facts of a file that yields what it objects to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from orchestrator.audit.context import Context
from orchestrator.audit.findings import Hit, Part, Rule, Severity

Look: TypeAlias = Callable[[Context], Iterator[Hit]]

RULES: dict[str, tuple[Rule, Look]] = {}  # over a file's source
ABOUT: dict[str, Rule] = {}  # every rule, also those over what was compiled or run


def declared(one: Rule) -> Rule:
    """Make a rule known by its id."""
    if one.id in ABOUT:
        raise ValueError(f"two rules called {one.id}")
    ABOUT[one.id] = one
    return one


def rule(id: str, severity: Severity, part: Part, title: str, *, why: str, repair: str) -> Callable[[Look], Look]:
    """Declare the function below as a rule."""

    def over_source(look: Look) -> Look:
        RULES[id] = (declared(Rule(id, severity, part, title, why, repair)), look)
        return look

    return over_source
