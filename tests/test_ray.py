"""Judges on a Ray cluster. What needs no Ray is tried everywhere; a cluster of several nodes on this machine, where Ray
is installed, in the long check.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator import config
from orchestrator.errors import JudgeError, JudgeLost, UsageError
from orchestrator.executors import pool, ray
from orchestrator.executors.pool import Pool, Slot
from orchestrator.records import Job, Judging, Report, Status, to_json
from tests.conftest import MakeJob, zoo_kernel
from tests.test_pool import JOB, MEASURE, Slow


def test_a_job_travels_as_data(tmp_path: Path) -> None:
    home = tmp_path / "run" / "job"
    (home / "scratch").mkdir(parents=True)
    (home / "champion").mkdir()
    (home / "k.py").write_bytes(b"kernel\xff")
    (home / "champion" / "k.py").write_bytes(b"champion")
    (home / "link").symlink_to("/etc/passwd")
    job = Job("id", "n", str(home), "op", "k.py", "f", (), {})
    sent = ray.parcel(job)
    assert str(tmp_path) not in str(sent.files) and set(sent.files) == {"k.py", "champion/k.py"}
    with ray.unpacked(sent, Job) as here:
        assert here.folder != job.folder and here.nonce == job.nonce
        found = {path.name: path.read_bytes() for path in Path(here.folder).iterdir() if path.is_file()}
        assert found == {"k.py": b"kernel\xff"} and (Path(here.folder) / "scratch").is_dir()
        assert (Path(here.folder) / "champion" / "k.py").read_bytes() == b"champion"
    assert not Path(here.folder).exists()


def test_a_workers_environment_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"PATH": "/bin", "RAY_ADDRESS": "x", "HOME": "/h", "RAY_AUTH_TOKEN": "Ray's own"}
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ORCHESTRATOR_WEBHOOK_URL", "AWS_SECRET_ACCESS_KEY")
    alike = ("HOMEBREW_GITHUB_API_TOKEN", "USER_PIN", "TMPDIR_KEY", "RAY_SECRET", "NVIDIA_API_KEY", "TRITON_TOKEN")
    for name in (*kept, *keys, *alike):
        monkeypatch.setenv(name, kept.get(name, "secret"))
    environment = dict(os.environ)
    ray.scrub(environment)
    assert kept.items() <= environment.items() and "secret" not in environment.values()


class Lost(Slow):
    """A judge whose machine goes away under its first job."""

    async def judge(self, job: Job) -> Report:
        await asyncio.sleep(0.01)
        raise JudgeLost("its node is gone")


async def test_a_job_of_a_lost_judge_goes_to_another() -> None:
    seen: list[Any] = []
    judges = Pool([Slot(Lost([], seen)), Slot(Slow([], seen))])
    reports = await asyncio.wait_for(asyncio.gather(*(judges.judge(JOB) for _ in range(4))), 20)
    assert [report.status for report in reports] == [Status.NO_CODE] * 4
    assert len(seen) == 4, "each was judged once to its end"
    assert judges.waiting == 0


async def test_where_every_judge_is_lost_whoever_waits_is_told() -> None:
    judges = Pool([Slot(Lost([], []))])
    ends = await asyncio.wait_for(asyncio.gather(*(judges.judge(JOB) for _ in range(3)), return_exceptions=True), 20)
    assert [type(end) for end in ends] == [JudgeLost] * 3
    with pytest.raises(JudgeLost, match="every judge was lost"):
        await judges.judge(JOB)


def test_without_ray_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'triton-kernel-orchestrator\[ray\]'"):
        pool.of(config.load(overrides=("judge.executor=ray",)).judge, None, Path())


class Mixed(ray.Cluster):
    """A cluster without Ray, whose first judge is on one kind of card and all others on another."""

    def __init__(self) -> None:
        self.judging, self._cards = None, ["H100"]

    def judge(self) -> Any:
        card = self._cards.pop() if self._cards else "A100"

        async def begun() -> str:
            return to_json(Judging(card, False, {}, ()), indent=None)

        return SimpleNamespace(start=SimpleNamespace(remote=begun))


class WithoutRay(ray.RayExecutor):
    """Its actor is of this process."""

    async def _asked(self, reference: Any) -> str:
        return str(await reference)


async def test_no_job_is_judged_on_another_kind_of_card() -> None:
    cluster = Mixed()
    await WithoutRay(cluster).start()
    other = WithoutRay(cluster)
    for _ in range(2):
        with pytest.raises(JudgeError, match="judges on A100 and on H100"):
            await other.start()


# --- a real cluster --------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without a slot, and two nodes with one each."""
    pytest.importorskip("ray", reason="Ray is not installed here")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    made.shutdown()


@pytest.mark.long
def test_a_node_that_is_lost_costs_only_its_jobs(cluster: Any, make_job: MakeJob) -> None:
    """Four verdicts on two nodes; one node ends under its first one. Before that, what such a cluster cannot do."""
    at = ("judge.executor=ray", f"judge.ray_address={cluster.address}")
    for more, said in (
        ("judge.device=gpu", "no node of the Ray cluster has one"),
        ("judge.ray_gpu=H200", "has no GPU"),
    ):
        with pytest.raises(UsageError, match=said):
            pool.of(config.load(overrides=(*at, more)).judge, None, Path())
    settings = config.load(overrides=(*at, "judge.device=cpu"))
    jobs = [make_job(zoo_kernel(name)) for name in ("good", "divides_by_block", "good", "divides_by_block")]

    async def work() -> tuple[Judging, list[Report]]:
        judges = pool.of(settings.judge, None, Path())
        try:
            judging = await judges.start()
            with pytest.raises(JudgeError, match="nothing to measure on"):
                await judges.measure(replace(MEASURE, folder=jobs[0].folder), print)
            asked = asyncio.gather(*(judges.judge(job) for job in jobs))
            while not (two := _judges()) or len(two) < 2:
                await asyncio.sleep(0.2)
            assert not [pid for pid in two if b"sk-0123456789" in Path(f"/proc/{pid}/environ").read_bytes()]
            await asyncio.to_thread(cluster.remove_node, list(cluster.worker_nodes)[0], False)
            return judging, await asyncio.wait_for(asked, 240)
        finally:
            await judges.close()

    judging, reports = asyncio.run(work())
    assert judging.interpreted and [report.status for report in reports] == [
        *(Status.PASSED, Status.WRONG_VALUES, Status.PASSED, Status.WRONG_VALUES),
    ]
    assert [report.nonce for report in reports] == [job.nonce for job in jobs]


@pytest.mark.long
def test_a_batch_goes_on_when_a_node_is_lost(cluster: Any, tmp_path: Path) -> None:
    """As a person starts it: four ops, two nodes, and one of them gone while its judge works."""
    ops = ("rmsnorm", "softmax", "swiglu", "vector_add")
    command = ("--ops", ",".join(ops), "--agent", "recorded", "--device", "cpu", "--json", "--quiet")
    running = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *command, "--executor", "ray", "--ray-address", cluster.address],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while len(_judges()) < 2 and running.poll() is None:
            time.sleep(0.2)
        time.sleep(3)  # both are at work
        cluster.remove_node(list(cluster.worker_nodes)[0], False)
        said, complained = running.communicate(timeout=280)
    finally:
        running.kill()
    assert running.returncode == 0, complained
    outcomes = {one["op"]: one["decision"] for one in json.loads(said)}
    assert outcomes == dict.fromkeys(ops, "UNMEASURED"), complained


def _judges() -> list[int]:
    """The judge processes of this machine that a node started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command, status = (place / "cmdline").read_bytes(), (place / "status").read_text()
        except OSError:
            continue
        if b"orchestrator.judge.server" in command:
            parent = int(status.partition("PPid:")[2].split()[0])
            if b"RemoteJudge" in _command(parent):
                found.append(int(place.name))
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
