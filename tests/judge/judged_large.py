"""One verdict by the judge itself in this process, with a large case on the CPU: `judged_large.py JOB`.

The card's memory has a stand-in: there is none while any process of the candidate's lives, as if each kept all of it.
Prints as JSON the verdict, its notes, the cases, and what was printed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.judge.server import _Judge


def main() -> None:
    job, judge = Path(sys.argv[1]).read_text(), _Judge("cpu", 1)

    from orchestrator.judge import large, sweep
    from orchestrator.judge.memory import HostArena

    class Room(large.Room):
        def __init__(self) -> None:
            self._buffers: list[Any] = []

        def tidy(self, case: Any) -> None:
            pass

        def take(self, case: Any) -> str:
            child = judge._server._current
            return "0 GB free" if child is not None and child.wait(0) is None else ""

        def leave(self) -> None:
            while self._buffers:
                self._buffers.pop().close()

    verdict = sweep.judge
    large.DeviceArena = HostArena  # type: ignore[misc, assignment]
    sweep.judge = lambda job, means: verdict(job, replace(means, room=Room(), compiler=None))
    report = json.loads(str(judge.answer({"job": job}, print)["report"]))
    told = {name: report[name] for name in ("status", "message", "notes", "output", "expected_cases")}
    print(json.dumps(told | {"cases": [f"{case['name']} {case['status']}" for case in report["cases"]]}))


if __name__ == "__main__":
    main()
