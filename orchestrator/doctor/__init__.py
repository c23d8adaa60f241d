"""Whether a run could work here, found out before one is tried: what is there, what lacks, what to do about it.

A check is a property, and a module here a subject. All run side by side and have `LIMIT_S` together: what has not
answered by then is "not known", never "ok". Torch is imported in a process of the judge's (`judge.facts`), with the
judge's environment, so that what is found is what the judge would find. No key is shown and none is sent.

Does not judge a kernel: an `ok` on every line says that a run can start, not that the GPU computes rightly.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict

from orchestrator.doctor import disk, graphics, models, stack, tools
from orchestrator.doctor.condition import LIMIT_S, Asked, Check, Condition, State, silent

CHECKS: dict[str, Check] = {
    "python": stack.python,
    "torch": stack.torch,
    "triton": stack.triton,
    "torch and triton": stack.imports,
    "gpu": graphics.graphics,
    "driver": graphics.driver,
    "gpu users": graphics.gpu_users,
    "c compiler": graphics.compiler,
    "triton cache": graphics.triton_cache,
    "git": tools.git,
    "sandbox": tools.sandbox,
    "disk": disk.disk,
    "temporary files": disk.temporary,
    "anthropic key": models.anthropic_key,
    "command": models.command,
    "anthropic server": models.anthropic_server,
    "openai key": models.openai_key,
    "openai server": models.openai_server,
}


def examine(asked: Asked, checks: dict[str, Check] = CHECKS, limit_s: float = LIMIT_S) -> tuple[Condition, ...]:
    """What all checks found, in their order, after `limit_s` at most. What a check raises is a bug, and is raised."""
    answers: queue.SimpleQueue[tuple[str, Condition | BaseException]] = queue.SimpleQueue()

    def ask(name: str, check: Check) -> None:
        try:
            answers.put((name, check(asked)))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answers.put((name, error))

    for name, check in checks.items():
        # A daemon: a driver that hangs must not hold this process.
        threading.Thread(target=ask, args=(name, check), daemon=True).start()
    found: dict[str, Condition] = {}
    deadline = time.monotonic() + limit_s
    while len(found) < len(checks):
        try:
            name, answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, BaseException):
            raise answer
        found[name] = answer
    return tuple(found.get(name) or silent(name, "ask again", limit_s) for name in checks)


def exit_code(conditions: Sequence[Condition]) -> int:
    """0 when nothing was found that stops a run here, 1 when something lacks that it cannot do without."""
    return int(bool(_stops(conditions)))


def to_text(conditions: Sequence[Condition]) -> str:
    """A line for each, and below it what to do; last, what it comes to."""
    lines = []
    for condition in conditions:
        lines.append(f"{condition.state:<16}{condition.name:<18}{condition.said}")
        if condition.advice:
            lines.append(f"{'':<34}-> {condition.advice}")
    return "\n".join([*lines, "", _conclusion(conditions)])


def to_json(conditions: Sequence[Condition]) -> str:
    """The same as JSON: {stopped_by: [name], not_known: [name], checks: [{name, state, said, advice, essential}]}."""
    checks = [asdict(condition) for condition in conditions]
    return json.dumps({"stopped_by": _stops(conditions), "not_known": _unknown(conditions), "checks": checks}, indent=2)


def _conclusion(conditions: Sequence[Condition]) -> str:
    if stops := _stops(conditions):
        return f"No run can work here; first mend: {', '.join(stops)}."
    if unknown := _unknown(conditions):
        return f"Nothing was found that stops a run here; not known: {', '.join(unknown)}."
    return "A run can work here."


def _stops(conditions: Sequence[Condition]) -> list[str]:
    return [condition.name for condition in conditions if condition.stops]


def _unknown(conditions: Sequence[Condition]) -> list[str]:
    return [condition.name for condition in conditions if condition.state is State.UNKNOWN]
