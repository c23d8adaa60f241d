"""What a kernel file comes to that is measured by itself. Verdicts and figures are scripted."""

from __future__ import annotations

from pathlib import Path

from orchestrator import bench, config
from orchestrator.ops import Op
from orchestrator.records import Decision, Judging, Report, Status
from orchestrator.verifying import KernelFile
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key


class Told:
    """Listens to nothing."""

    def verifying(self, judging: Judging) -> None: ...

    def verified(self, file: str, report: Report) -> None: ...

    def measuring(self, text: str) -> None: ...


async def test_what_it_would_end_as_is_what_a_run_would(rmsnorm: Op, tmp_path: Path) -> None:
    for name, decision in (("good", Decision.MERGE), ("divides_by_block", Decision.ESCALATE)):
        kernel = zoo_kernel(name)
        judge = ScriptedJudge({key(kernel): Script(Status.PASSED)}, tmp_path / "log")
        folder = tmp_path / name
        folder.mkdir()
        found = await bench.bench(KernelFile("k.py", kernel), rmsnorm, judge, config.load(), Told(), folder)
        assert found.verdict is not None and found.verdict.decision is decision, name
        assert found.measurement is not None and bench.exit_code(found) == 0
    assert found.verdict.reason == (
        "Correct on every case, but not accepted: the audit establishes divided-by-block in line 14; a person looks."
    )
