"""The orchestrator for programs: a run, a verdict, a measurement, each one call with a typed result.

    from orchestrator import measure, run_op, verify

Owns what a program and the command line share: settings from a mapping, a judge that is ended whatever happens, the
ledger beside the watcher. Prints nothing: `watch` is told of each step and `say` of each remark by whoever gives them.
`ops_dir` holds a person's own ops beside those that are shipped. Everything that goes wrong and is not the candidate's
fault is an `errors.OrchestratorError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from orchestrator import (
    accounts,
    bench,
    catalogue,
    config,
    finish,
    gpu,
    ledger,
    loop,
    opcheck,
    outcome,
    tracing,
    tracking,
    verifying,
)
from orchestrator.agents.choose import choose
from orchestrator.asking import Asking, Purse, begins_with
from orchestrator.bench import Benched
from orchestrator.config import Settings
from orchestrator.errors import UsageError
from orchestrator.executors import pool
from orchestrator.executors.remembering import remembering
from orchestrator.ledger import Ledger, entered
from orchestrator.measuring import NOTHING_TO_MEASURE_ON
from orchestrator.ops import Op
from orchestrator.records import Judging, Report, Run
from orchestrator.verifying import KernelFile, Verified
from orchestrator.watch import Several, Silent, Watch

T = TypeVar("T")
SomeSettings: TypeAlias = Settings | Mapping[str, Mapping[str, Any]] | None  # sections, as in a settings file
WORKSPACES = Path("workspaces")
_UNPAID = ("recorded", "inbox", "nobody")  # agents that spend nothing


class _SilentJudging:
    """Watches no verdict."""

    def verifying(self, judging: Judging) -> None: ...

    def verifying_file(self, file: str) -> None: ...

    def verified(self, file: str, report: Report) -> None: ...

    def measuring(self, text: str) -> None: ...


def _nothing(text: str) -> None: ...


def run_op(
    op: str | Op,
    *,
    workspaces: str | Path = WORKSPACES,
    ops_dir: Path | None = None,
    settings: SomeSettings = None,
    watch: Watch | None = None,
    say: Callable[[str], None] = _nothing,
    run_id: str | None = None,
) -> Run:
    """Have a model write a kernel for the op and decide on it: the record of the run, which is also on disk.

    Who writes it is settings["agent"]["name"]; without a key for a model, "auto" replays what is recorded for the op,
    and the record says so. A `run_id` that was begun before goes on from its last completed step; of a run that is over
    the record is all that is read.
    """
    wanted, resolved, place = _op(op, ops_dir), _settings(settings), Path(workspaces)
    if run_id is not None and (run := outcome.over(run_id, place)) is not None:
        with closing(Ledger(place)) as index:
            ledger.refresh(index, place / "runs" / run_id)  # it may have been killed between the record and its row
        say(f"{wanted.name}: {run_id} is over, {run.verdict.decision if run.verdict else ''}")
        return run

    async def work() -> Run:
        given = resolved.loop.given
        agent, why = choose(
            resolved.agent.name,
            op_recorded=wanted.recorded,
            single_op=True,
            options=resolved.agent.options(require_sandbox=resolved.judge.require_sandbox),
            announce=say,
            given=given is not None,
        )
        asking = begins_with(given, Asking(agent, (Purse("op", resolved.budget.op),)), wanted)
        say(why)
        async with pool.one(resolved.judge, place / "judge.log") as executor:
            say(await opcheck.require(wanted, executor, resolved.judge))
            if agent.name not in _UNPAID:
                _estimate(wanted, resolved, place, say)
            remembers = remembering(executor, wanted, resolved, place)
            with _told(resolved, place, watch, say) as told:
                return await loop.run_op(wanted, asking, remembers, resolved, place, told, run_id)

    return _finished(work())


def _estimate(op: Op, settings: Settings, workspaces: Path, say: Callable[[str], None]) -> None:
    """What is likely to be spent, before anything is."""
    with closing(Ledger(workspaces)) as index:
        for sentence in accounts.estimated([accounts.estimate(index, op, settings)]):
            say(sentence)


def verify(
    *files: str | Path | KernelFile,
    op: str | Op,
    ops_dir: Path | None = None,
    settings: SomeSettings = None,
    watch: verifying.Watch | None = None,
    scripts: Path | None = None,
) -> tuple[Verified, ...]:
    """The judge's verdicts on kernel files, in their order, by one judge for all of them.

    A file is a path, or a KernelFile with its bytes. Into the folder `scripts` goes one that reproduces each failure.
    """
    wanted, resolved = _op(op, ops_dir), _settings(settings)
    read = [file if isinstance(file, KernelFile) else verifying.read([str(file)])[0] for file in files]

    async def work(log: Path) -> tuple[Verified, ...]:
        async with pool.one(resolved.judge, log) as executor:
            told = watch or _SilentJudging()
            return await verifying.verify(read, wanted, executor, resolved.judge, told, scripts)

    with verifying.judge_log() as log:
        return _finished(work(log))


def measure(
    file: str | Path | KernelFile,
    *,
    op: str | Op,
    dtypes: tuple[str, ...] = (),
    out: str | Path | None = None,
    ops_dir: Path | None = None,
    settings: SomeSettings = None,
    watch: bench.Watch | None = None,
) -> Benched:
    """Judge a kernel file and, if it passes, time it beside the op's baselines.

    With all of the op's dtypes if none are given. Needs a GPU. The evidence is kept in a new folder in `out`, if that
    is given.
    """
    wanted, resolved = _op(op, ops_dir), _settings(settings)
    require_gpu(resolved)
    read = file if isinstance(file, KernelFile) else verifying.read([str(file)])[0]

    async def work(folder: Path, log: Path) -> Benched:
        async with pool.one(resolved.judge, log) as executor:
            told = watch or _SilentJudging()
            return await bench.bench(read, wanted, executor, resolved, told, folder, dtypes)

    kept = verifying.kept_or_temporary(None if out is None else Path(out))
    with verifying.judge_log() as log, kept as folder:
        return _finished(work(folder, log))


def measure_run(
    run: str,
    *,
    workspaces: str | Path = WORKSPACES,
    ops_dir: Path | None = None,
    settings: SomeSettings = None,
    watch: Watch | None = None,
    say: Callable[[str], None] = _nothing,
) -> Run:
    """Finish a run that was UNMEASURED: its best kernel is judged again on this machine's GPU, measured and decided."""
    resolved, place = _settings(settings), Path(workspaces)
    require_gpu(resolved)
    ended = finish.find(run, place, catalogue.opened(ops_dir).load)

    async def work() -> Run:
        async with pool.one(resolved.judge, place / "judge.log") as executor:
            with _told(resolved, place, watch, say) as told:
                return await finish.measure(ended, executor, resolved, told)

    return _finished(work())


@contextmanager
def _told(settings: Settings, workspaces: Path, watch: Watch | None, say: Callable[[str], None]) -> Iterator[Watch]:
    """The watcher, and beside it what enters the run into the ledger and, where it is asked for, sends it elsewhere."""
    with (
        tracking.following(settings.mlflow, say) as more,
        entered(workspaces, Several(watch or Silent(), *more, *tracing.watchers())) as told,
    ):
        yield told


def _op(op: str | Op, ops_dir: Path | None) -> Op:
    return op if isinstance(op, Op) else catalogue.opened(ops_dir).load(op)


def _settings(given: SomeSettings) -> Settings:
    if isinstance(given, Settings):
        return given
    return config.load(flags={section: dict(values) for section, values in (given or {}).items()})


def require_gpu(settings: Settings) -> None:
    """Before anything is started: to measure is to need a GPU. Raises UsageError where there is none to be used."""
    if settings.judge.device == "cpu" or (settings.judge.executor == "local" and not gpu.present()):
        raise UsageError(NOTHING_TO_MEASURE_ON)


def _finished(work: Coroutine[Any, Any, T]) -> T:
    """What the work comes to; also where a loop runs already, as in a notebook."""
    if not _in_a_loop():  # decided before: within an except block every later error would carry that one as its context
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
