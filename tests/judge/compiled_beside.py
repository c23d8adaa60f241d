"""What was launched so far, compiled beside a sweep: `python compiled_beside.py FILE SPECIALIZATIONS`.

Has the specializations (a JSON list of texts) of the kernel file compiled while nothing else happens, then asks for
them as a verdict does; then ends a file that never imports, and asks what a file that cannot be imported comes to.
Prints JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.judge import ahead
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.compilation import Ahead, Compiler
from orchestrator.judge.forkserver import ForkServer
from orchestrator.records import Job, Limits

PATIENCE_S = 60
NEVER = "import time\ntime.sleep(600)\n"
RAISES = "raise RuntimeError('not here')\n"
TELLS = """import pathlib
try:
    (pathlib.Path(__file__).parent / "scratch" / "told").write_text("an answer")
except OSError:
    pass
"""


@contextmanager
def ended(beside: Ahead) -> Iterator[Ahead]:
    try:
        yield beside
    finally:
        beside.end()


def job_of(folder: Path, text: str) -> Job:
    (folder / "scratch").mkdir(parents=True)
    (folder / "k.py").write_text(text)
    return Job("j", "n", str(folder), "op", "k.py", "f", arguments=(), parameters={}, limits=Limits(compile_s=60))


def until_remembered(compiler: Compiler, job: Job, texts: list[str]) -> float:
    """Seconds until all of it is, with nobody asking for it."""
    kernel = Path(job.folder) / job.kernel
    cache = ahead.Cache(compiler._folder, kernel.read_bytes(), compiler._version)
    work = [(ahead.specialization_from_json(text), target) for text in texts for target in ahead.TARGETS]
    begun = time.monotonic()
    with ended(compiler.ahead(job)) as beside:
        beside.take(texts[:1])
        beside.take(texts[1:])
        while time.monotonic() - begun < PATIENCE_S and not all(cache.known(*item) for item in work):
            time.sleep(0.05)
    return time.monotonic() - begun


def refused(compiler: Compiler, job: Job, told: Any) -> str:
    try:
        with ended(compiler.ahead(job)) as beside:
            beside.take(told)
            beside.take(told)
    except CandidateFailed as failed:
        return failed.status
    return "taken"


def main() -> None:
    file, texts = Path(sys.argv[1]), json.loads(sys.argv[2])
    server = ForkServer.start(ahead.serve, ahead.prepare)
    root = Path(tempfile.mkdtemp(prefix="beside-"))
    compiler = Compiler(server, root / "cache", "3")
    good, never, raises, tells = (
        job_of(root / name, text) for name, text in zip("gnrt", (file.read_text(), NEVER, RAISES, TELLS), strict=True)
    )
    found: dict[str, Any] = {"seconds": until_remembered(compiler, good, texts)}
    found["cached"] = [result.cached and result.ok for result in compiler.compile(good, texts)]
    begun = time.monotonic()
    with ended(compiler.ahead(never)) as beside:
        beside.take(texts)
        time.sleep(0.5)
    found["ended"] = time.monotonic() - begun
    with ended(compiler.ahead(raises)) as beside:
        beside.take(texts)
        time.sleep(1)
    found["raises"] = [result.error for result in compiler.compile(raises, texts)]
    compiler.compile(tells, texts)
    found["left"] = [path.name for path in Path(tells.folder).rglob("*")]
    malformed: list[Any] = ["none", [{}], ["{}"], texts * 101]
    found["refused"] = [refused(compiler, good, told) for told in malformed]
    found["after"] = all(result.ok for result in compiler.compile(good, texts)) and server.alive
    print(json.dumps(found))
    server.close()
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
