"""Judge jobs on the nodes of a Ray cluster: one actor a judge, which holds a GPU, or a CPU slot where there is none.

Owns the connection, where a judge may run, how a job travels (its files' bytes, never a path) and what the loss of a
node is: the judge's end, not the job's. On its node a job is judged as on any machine, by a `LocalExecutor` with its
judge process and its confinement; the package must be installed there in the same version. Models are never called
from a node, and no key of a worker's environment reaches a judge. All judges are on one kind of card, so that what is
compared was measured on the same.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator import __version__
from orchestrator.errors import JudgeError, JudgeLost, UsageError
from orchestrator.executors.local import LocalExecutor, judge_environment, names_a_secret
from orchestrator.measured import Measured, MeasureJob, SweepJob, Swept
from orchestrator.records import Job, Judging, OpCheck, OpCheckJob, Report, from_json, to_json
from orchestrator.text import printable
from orchestrator.tree import os_errors

if TYPE_CHECKING:
    from orchestrator.config import JudgeSettings

AnyJob = TypeVar("AnyJob", bound=Job | MeasureJob | SweepJob | OpCheckJob)
_TIMED: dict[str, type[MeasureJob] | type[SweepJob]] = {"MeasureJob": MeasureJob, "SweepJob": SweepJob}
_OTHER_JOB = "the judge answered another job than the one it was given"
_KIND = "accelerator_type:"  # Ray's own custom resource for the kind of a node's cards
# Beside what a judge's environment keeps, for Ray itself. The last three let it into its cluster; no judge gets them.
_KEPT_FOR_RAY = ("HOME", "TMPDIR", "USER", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_TLS_SERVER_KEY")


@dataclass(frozen=True)
class Parcel:
    """A job as data: its record, and its folder's files by relative path."""

    kind: str  # the record's class
    record: str
    files: Mapping[str, bytes]
    folders: tuple[str, ...]


class Cluster:
    """A Ray cluster, connected. Raises UsageError where Ray is missing or there is nothing to judge on."""

    def __init__(self, settings: JudgeSettings) -> None:
        try:
            import ray
        except ImportError as error:
            raise UsageError("--executor ray needs Ray: pip install 'triton-kernel-orchestrator[ray]'") from error
        self._device = settings.device
        self._ours = not ray.is_initialized()
        try:
            with _without_secrets():  # a cluster that this starts would have them from us
                ray.init(
                    address=settings.ray_address, logging_level="ERROR", log_to_driver=False, ignore_reinit_error=True
                )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            where = settings.ray_address or "of this machine"
            raise UsageError(f"no Ray cluster at --ray-address {where}: {printable(str(error), 200)}") from error
        try:
            self.kind = self._chosen_kind(settings.ray_gpu)
        except UsageError:
            self.close()
            raise
        self.judging: Judging | None = None  # of the first judge: the others must be like it

    def places(self) -> int:
        """As many judges as there is room for: one a card of the kind, or one a node where there is none."""
        nodes = [node for node in self._nodes() if not self.kind or self.kind in _kinds(node)]
        counts = [int(node["GPU"]) if self.kind else int(node.get("CPU", 0) >= 1) for node in nodes]
        if not sum(counts):
            raise UsageError("no node of the Ray cluster has a GPU or a CPU left to judge on; add one")
        return sum(counts)

    def judge(self) -> Any:
        """A new judge's actor, wherever there is room."""
        import ray

        held: dict[str, Any] = {"num_gpus": 1, "num_cpus": 0} if self.kind else {"num_cpus": 1}
        if self.kind:
            held["resources"] = {f"{_KIND}{self.kind}": 0.001}
        spread = "SPREAD"
        return (
            ray.remote(RemoteJudge)
            .options(**held, max_restarts=0, scheduling_strategy=spread)
            .remote("gpu" if self.kind else "cpu", __version__)
        )

    def alike(self, judging: Judging) -> None:
        """Raises JudgeError for a judge on another kind of device than the first."""
        self.judging = self.judging or judging
        if judging.device != self.judging.device:
            raise JudgeError(
                f"the Ray cluster judges on {judging.device} and on {self.judging.device}; --ray-gpu names one kind"
            )

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        import ray

        if self._ours:
            ray.shutdown()

    def _nodes(self) -> list[dict[str, float]]:
        import ray

        return [node["Resources"] for node in ray.nodes() if node["Alive"]]

    def _chosen_kind(self, wanted: str | None) -> str:
        """The kind of card to judge on; '' for Triton's interpreter on CPUs."""
        kinds = sorted({kind for node in self._nodes() if node.get("GPU", 0) >= 1 for kind in _kinds(node)})
        if wanted is not None and wanted not in kinds:
            raise UsageError(f"--ray-gpu {wanted!r}: the cluster has {', '.join(kinds) or 'no GPU'}")
        if self._device == "cpu" or (self._device == "auto" and not kinds):
            return ""
        if not kinds:
            raise UsageError("judge.device is gpu, and no node of the Ray cluster has one")
        if wanted is None and len(kinds) > 1:
            raise UsageError(f"the Ray cluster has {' and '.join(kinds)}: say which with --ray-gpu KIND")
        return wanted or kinds[0]


class RayExecutor:
    """One judge of a cluster. Raises JudgeLost once its node is gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._actor: Any = None
        self._judging: Judging | None = None

    async def start(self) -> Judging:
        """Begin the judge on some node, unless it has begun."""
        if self._judging is None:
            self._actor = self._cluster.judge()
            judging = from_json(Judging, await self._asked(self._actor.start.remote()))
            self._cluster.alike(judging)
            self._judging = judging
        return self._judging

    async def judge(self, job: Job) -> Report:
        """The verdict."""
        await self.start()
        report = from_json(Report, await self._asked(self._actor.judge.remote(parcel(job))))
        if report.nonce != job.nonce:
            raise JudgeError(_OTHER_JOB)
        return report

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        """What becomes of the op's decoys."""
        await self.start()
        return from_json(OpCheck, await self._asked(self._actor.check_op.remote(parcel(job))))

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        """How fast a passed kernel is."""
        measured = from_json(Measured, await self._timed(job, tell))
        if measured.nonce != job.nonce:
            raise JudgeError(_OTHER_JOB)
        return measured

    async def sweep(self, job: SweepJob, tell: Callable[[str], None]) -> Swept:
        """What other launch parameters would do."""
        swept = from_json(Swept, await self._timed(job, tell))
        if swept.nonce != job.kernel.nonce:
            raise JudgeError(_OTHER_JOB)
        return swept

    async def _timed(self, job: MeasureJob | SweepJob, tell: Callable[[str], None]) -> str:
        """The answer to a job that says how far it is."""
        await self.start()
        said = ""
        async for piece in self._pieces(self._actor.timed.options(num_returns="streaming").remote(parcel(job))):
            said = piece
            if not piece.startswith("{"):
                tell(piece.strip())
        return said

    async def close(self) -> None:
        """End the judge; its processes end with its actor."""
        import ray

        if self._actor is not None:
            ray.kill(self._actor)
            self._actor = self._judging = None

    async def _pieces(self, stream: Any) -> AsyncIterator[str]:
        with _ray_errors():
            async for reference in stream:
                yield str(await reference)

    async def _asked(self, reference: Any) -> str:
        with _ray_errors():
            return str(await reference)


class RemoteJudge:
    """What runs on a node: a judge of that machine. An actor's class; takes and gives data only."""

    def __init__(self, device: str, version: str) -> None:
        if version != __version__:
            raise JudgeError(f"a node has version {__version__} of the orchestrator, the driver {version}")
        scrub(os.environ)
        self._folder = Path(tempfile.mkdtemp(prefix="orchestrator-node-"))
        self._executor = LocalExecutor(device, self._folder / "judge.log")

    async def start(self) -> str:
        """Where this judges."""
        return to_json(await self._executor.start(), indent=None)

    async def judge(self, job: Parcel) -> str:
        """The verdict."""
        with unpacked(job, Job) as here:
            return to_json(await self._executor.judge(here), indent=None)

    async def check_op(self, job: Parcel) -> str:
        """What becomes of the decoys."""
        with unpacked(job, OpCheckJob) as here:
            return to_json(await self._executor.check_op(here), indent=None)

    async def timed(self, job: Parcel) -> AsyncIterator[str]:
        """Lines of progress, then what a measurement or a sweep came to."""
        lines: asyncio.Queue[str] = asyncio.Queue()
        with unpacked(job, _TIMED[job.kind]) as here:
            work = asyncio.ensure_future(self._work(here, lambda text: lines.put_nowait(f" {text}")))
            work.add_done_callback(lambda done: lines.put_nowait(""))
            while line := await lines.get():
                yield line
            yield to_json(await work, indent=None)

    async def _work(self, job: MeasureJob | SweepJob, tell: Callable[[str], None]) -> Measured | Swept:
        if isinstance(job, SweepJob):
            return await self._executor.sweep(job, tell)
        return await self._executor.measure(job, tell)


def scrub(environment: Any) -> None:
    """Takes from a worker's environment what neither a judge nor Ray needs; keys are among that."""
    kept = {*judge_environment(), *_KEPT_FOR_RAY}
    for name in list(environment):
        if name not in kept and (names_a_secret(name) or not name.startswith("RAY_")):
            del environment[name]


def parcel(job: AnyJob) -> Parcel:
    """A job with its folder's files."""
    top = Path(job.kernel.folder if isinstance(job, SweepJob) else job.folder)
    with os_errors(f"read {top}"):
        found = sorted(path for path in top.rglob("*") if not path.is_symlink())
        files = {str(path.relative_to(top)): path.read_bytes() for path in found if path.is_file()}
        folders = tuple(str(path.relative_to(top)) for path in found if path.is_dir())
    return Parcel(type(job).__name__, to_json(job, indent=None), files, folders)


@contextmanager
def unpacked(sent: Parcel, kind: type[AnyJob]) -> Iterator[AnyJob]:
    """The job in a folder of this machine, which is gone afterwards."""
    top = Path(tempfile.mkdtemp(prefix="orchestrator-job-"))
    folder = top / "run" / "job"  # as deep as a driver's: a job is called after the folder above its own
    try:
        for name in (".", *sent.folders):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, data in sent.files.items():
            (folder / name).write_bytes(data)
        yield _at(from_json(kind, sent.record), str(folder))
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _at(job: AnyJob, folder: str) -> AnyJob:
    if isinstance(job, SweepJob):
        return replace(job, kernel=replace(job.kernel, folder=folder))
    return replace(job, folder=folder)


def _kinds(node: Mapping[str, float]) -> set[str]:
    return {name.removeprefix(_KIND) for name in node if name.startswith(_KIND)}


@contextmanager
def _without_secrets() -> Iterator[None]:
    whole = dict(os.environ)
    scrub(os.environ)
    try:
        yield
    finally:
        os.environ.update(whole)


@contextmanager
def _ray_errors() -> Iterator[None]:
    """The boundary at which Ray's failures become ours: what the judge says is an error, the end of a node a loss."""
    from ray import exceptions

    try:
        yield
    except (exceptions.ActorDiedError, exceptions.ActorUnavailableError, exceptions.ObjectLostError) as error:
        raise JudgeLost(f"a judge of the Ray cluster is gone: {printable(str(error), 200)}") from error
    except exceptions.RayTaskError as error:
        raise JudgeError(printable(str(error.cause), 400)) from error
    except exceptions.RayError as error:
        raise JudgeError(f"the Ray cluster failed: {printable(str(error), 300)}") from error
