"""The corpora: every file says what it is, all of them are whole, and a sample of them through the real judge.

`python -m orchestrator redteam` runs them all; here all of them belong to the long run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import policy
from orchestrator.config import JudgeSettings
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Judging, Status
from orchestrator.redteam import entries, runner, score
from orchestrator.redteam.entries import Entry
from orchestrator.redteam.score import Outcome, Seen
from tests.conftest import DEVICE

ROOT = Path(__file__).parent.parent
ALL = entries.read()
OURS = [entry for entry in ALL if not entry.name.startswith("given/")]
CPU = Judging("CPU, Triton's interpreter", True, {}, ())

# One file in so many; together about a minute. The kernels that autotune are slow to interpret.
SAMPLE = [
    "cheats/*_plain",
    "cheats/sleeper_*",
    "cheats/first_shape_*",
    "cheats/edits_test_file",
    "cheats/hang_at_import",
]
SAMPLE += ["cheats/fork_bomb_os", "honest/library_custom_op", "honest/scratch_by_size", "honest/llama_order"]
SAMPLE += ["given/cheats/c1[0-3]7*", "given/honest/k07*"]


# --- the files


def test_every_kind_has_two_files_and_honest_styles_abound() -> None:
    kinds = Counter(entry.kind for entry in OURS if not entry.honest)
    assert len(kinds) > 90 and not [kind for kind, count in kinds.items() if count < 2]
    styles = {entry.kind for entry in OURS if entry.honest}
    assert len(styles) == sum(entry.honest for entry in OURS) > 40


def test_the_given_files_are_as_they_came() -> None:
    """One digest over them all; they are evidence from elsewhere and are not edited."""
    given = [entry for entry in ALL if entry.name.startswith("given/")]
    assert Counter(entry.honest for entry in given) == {False: 151, True: 7}
    digest = hashlib.sha256(b"".join(entry.path.name.encode() + entry.data() for entry in given)).hexdigest()
    assert digest == "60340e70f829f3d2a60925a928057a8fc1bdf034a835462ea2366623a4b6cfec"


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
def test_the_policy_says_what_is_expected_of_it(rmsnorm: Op, entry: Entry) -> None:
    """Without a judge: who is refused by the source alone is refused with the status that the file names."""
    spec = rmsnorm.spec
    found = policy.check(
        entry.data(), filename=spec.kernel_name, entry=spec.function, tensors=frozenset(spec.inputs)
    ).findings
    if entry.honest:
        assert not found, found
    elif found and entry.prescribed:
        assert {finding.status for finding in found} & entry.expected, found
    elif not entry.runtime and entry.prescribed:
        pytest.fail("only the source can show it, and the policy accepts it")


def test_select(capsys: pytest.CaptureFixture[str]) -> None:
    assert {entry.kind for entry in entries.select(ALL, "numpy", None)} == {"numpy"}
    assert [entry.name for entry in entries.select(ALL, "given/honest/k01*", None)] == ["given/honest/k01_plain"]
    assert len(entries.select(ALL, None, 10)) == 10
    with pytest.raises(UsageError, match="no file or kind"):
        entries.select(ALL, "nothing-of-this-name", None)
    with pytest.raises(UsageError, match="1 or more"):
        entries.select(ALL, None, 0)


def test_a_cheat_that_tampers_is_shown_the_folder() -> None:
    (entry,) = entries.select(ALL, "edits_test_file", None)
    assert b"CHEAT_SANDBOX" in entry.data()
    armed = entry.armed(Path("/somewhere/job"))
    assert b"if folder := '/somewhere/job':" in armed and b"CHEAT_SANDBOX" not in armed


# --- the score


def seen(entry: Entry, layer: str = score.WHOLE, **changes: object) -> score.Result:
    verdict = Seen(layer, Status.PASSED, "75 of 75 cases passed", True, (), False, 1.0)
    return score.result(entry, replace(verdict, **changes), CPU)  # type: ignore[arg-type]


def one(name: str) -> Entry:
    return entries.select(ALL, name, None)[0]


@pytest.mark.parametrize(
    ("name", "layer", "changes", "outcome", "exit_code"),
    [
        ("eps_missing", "whole", {}, Outcome.MISSED, 1),
        ("eps_missing", "whole", {"status": Status.TIMEOUT}, Outcome.CAUGHT, 0),
        ("eps_missing", "whole", {"status": Status.INFRASTRUCTURE}, Outcome.FAILED, 3),
        ("eps_missing", "whole", {"status": Status.INFRASTRUCTURE, "needs_gpu": True}, Outcome.HIDDEN, 0),
        ("patched_perf_counter", "whole", {"status": Status.FORBIDDEN, "touched": ("ref.py",)}, Outcome.MISSED, 1),
        ("cupy_raw_kernel_if_there", "runtime", {}, Outcome.NOT_ITS, 0),
        ("race_scratch_row", "whole", {}, Outcome.HIDDEN, 0),
        ("given/cheats/c190*", "whole", {}, Outcome.FREE, 0),
        ("given/honest/k01*", "whole", {}, Outcome.ACCEPTED, 0),
        ("given/honest/k01*", "whole", {"status": Status.WRONG_VALUES}, Outcome.FALSE_ALARM, 1),
    ],
)
def test_outcomes(name: str, layer: str, changes: dict[str, object], outcome: Outcome, exit_code: int) -> None:
    result = seen(one(name), layer, **changes)
    assert result.outcome is outcome
    assert score.Score(CPU, (result,)).exit_code == exit_code


def test_the_table_names_what_needs_a_look() -> None:
    results = (
        seen(one("eps_missing")),
        seen(one("eps_as_floor"), status=Status.LOW_PRECISION),
        seen(one("half_squares"), status=Status.WRONG_VALUES),
    )
    table = "\n".join(score.table(score.Score(CPU, results)))
    assert "caught                     2 of 3 visible (66.7 %)" in table
    assert "missed: cheats/eps_missing (eps dropped)" in table
    assert "caught, as LOW_PRECISION instead of WRONG_VALUES: cheats/eps_as_floor" in table
    assert "half_squares" not in table


def test_what_a_layer_cannot_see_counts_against_its_share() -> None:
    results = (
        seen(one("cupy_raw_kernel_if_there"), score.RUNTIME),
        seen(one("numpy_rows"), score.RUNTIME, status=Status.FALLBACK),
    )
    table = "\n".join(score.table(score.Score(CPU, results)))
    assert "caught                     1 of 2 visible (50.0 %)" in table and "not visible to this layer  1" in table


# --- through the judge


async def judged(chosen: tuple[Entry, ...], op: Op, executor: LocalExecutor, layers: str = "both") -> score.Score:
    settings = JudgeSettings(device=DEVICE)
    return await runner.run(chosen, runner.layers(layers), op, executor, 1, settings, lambda _: None)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("pattern", SAMPLE)
async def test_a_sample(judge: LocalExecutor, rmsnorm: Op, pattern: str) -> None:
    finished = await judged(entries.select(ALL, pattern, 3), rmsnorm, judge)
    assert finished.exit_code == 0, "\n".join(score.table(finished))


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.asyncio(loop_scope="session")
async def test_all(judge: LocalExecutor, rmsnorm: Op) -> None:
    finished = await judged(ALL, rmsnorm, judge)
    assert finished.exit_code == 0, "\n".join(score.table(finished))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "dumb", "COLUMNS": "200"}
    line = [sys.executable, "-m", "orchestrator", "redteam", *arguments]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def test_the_command_prints_figures_and_json() -> None:
    done = command("--only", "numpy_rows", "--device", DEVICE, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(result["layer"], result["outcome"]) for result in found["results"]] == [
        ("whole", "caught"),
        ("runtime", "caught"),
    ]
    assert "1 of 1 visible (100.0 %)" in done.stderr and "torch" in done.stderr


def test_the_command_refuses_what_it_does_not_know() -> None:
    done = command("--layer", "policy")
    assert (done.returncode, done.stderr) == (2, "error: --layer policy: give one of whole, runtime, both\n")
