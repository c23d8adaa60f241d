"""One verdict by the judge itself in this process, of so many that share the machine: `judged_beside.py JOB JUDGES`.

Prints as JSON the verdict and how many launches were compiled before its cases were through.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from orchestrator.judge.server import _Judge


def main() -> None:
    job, compiled = Path(sys.argv[1]).read_text(), []
    judge = _Judge("cpu", int(sys.argv[2]))

    from orchestrator.judge.compilation import Compiler

    remember = Compiler.remember

    def counted(self: Compiler, job: Any, work: Any, started: Any) -> None:
        remember(self, job, work, started)
        compiled.append(len(work))

    Compiler.remember = counted  # type: ignore[method-assign]
    report = json.loads(str(judge.answer({"job": job}, print)["report"]))
    print(json.dumps({"status": report["status"], "message": report["message"], "compiled": compiled}))


if __name__ == "__main__":
    main()
