"""A night as a person reads it: the report in Markdown, and the few lines that a terminal and a webhook get.

Owns the words. The facts are the record's.
"""

from __future__ import annotations

from orchestrator import resources
from orchestrator.nights.story import Night
from orchestrator.text import printable


def to_markdown(night: Night) -> str:
    """The report."""
    environment = resources.environment(resources.templates())
    came_to = {one.op: f"{one.decision}: {one.reason}" for one in night.generated}
    return environment.get_template("night.md.j2").render(night=night, headline=headline(night), came_to=came_to)


def headline(night: Night) -> str:
    """What matters, in a few words."""
    count = len(night.regressions)
    said = f"{count} regression{'' if count == 1 else 's'}" if count else "no regression"
    unjudged = sum(one.unjudged for one in night.checked)
    return f"{said}, {unjudged} champions without a verdict" if unjudged else said


def in_lines(night: Night) -> str:
    """The night in a few lines."""
    held = sum(one.holds for one in night.checked)
    lines = [f"night {night.begun.id}: {headline(night)}; {held} of {len(night.checked)} champions hold"]
    lines += [f"{one.op}: {one.what}: {printable(one.text, 400)}" for one in night.regressions]
    lines += [f"{one.op}: {one.decision}: {printable(one.reason, 200)}" for one in night.generated]
    lines += [f"generating ended with: {printable(night.trouble, 400)}"] if night.trouble else []
    return "\n".join(lines)
