"""What the pages tell of a record: pure functions, and which runs are gathered for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.recorder import Recorder
from orchestrator.records import AuditFinding, Part, Severity, Status
from orchestrator.report import changes, curves, gather, op_page, run_page, site
from orchestrator.report.figures import Axis, Figure, Kind, Point, Series
from orchestrator.report.gather import Gathered
from orchestrator.report.heat import Field, heat
from orchestrator.report.overview import overview
from orchestrator.watch import Silent
from orchestrator.workspace import Workspace
from tests import past_runs
from tests.measurements import measured, shape
from tests.report.conftest import History, load


def test_a_figure_has_the_numbers_that_it_draws() -> None:
    kernel = Series("kernel", Kind.KERNEL, (Point(1, 2.5, "1 × 4"), Point(4096, 1234.0, "4096 × 4")))
    other = Series("other", Kind.BASELINE, (Point(4096, 0.00123456, "4096 × 4"),))
    table = Figure("a", "Latency", "", Axis("M"), Axis("us"), (kernel, other)).table
    assert table.head == ("point", "M", "kernel", "other")
    assert table.rows == (("1 × 4", "1", "2.5", ""), ("4096 × 4", "4,096", "1,234", "0.001235"))


def test_curves_take_the_shapes_in_which_one_dim_grows(rmsnorm: Op) -> None:
    found = curves.sweeps(past_runs.timed(rmsnorm, 1.2))
    longest = {sweep.dim: sweep for sweep in reversed(found)}
    assert [one.dims["M"] for one in longest["M"].shapes] == [1, 16, 64, 256, 1024, 4096 * 4, 32768]
    assert longest["M"].stays == "N = 4096" and longest["N"].stays == "M × N = 33,554,432"
    sizes = [
        sorted({one.dims["N"] for one in sweep.shapes}) == [one.dims["N"] for one in sweep.shapes]
        for sweep in found
        if sweep.dim == "N"
    ]
    assert all(sizes)
    figure = curves.bandwidth(longest["M"])
    names = [series.name for series in figure.series]
    assert names == ["this kernel", "eager reference", "torch.compile", "torch.nn.functional.rms_norm", "ceiling"]
    one = longest["M"].shapes[-1]
    assert figure.series[-1].points[-1].y == pytest.approx(one.bytes / one.ideal_us / 1e3)


def test_a_roofline_needs_arithmetic_that_is_counted() -> None:
    found = measured(shape(40), matmul_tflops={"float16": 700.0})
    figure = curves.roofline(found)
    assert figure is not None
    kernel, copying, multiplying = figure.series
    assert kernel.points[0].x == 1 and kernel.points[0].y == pytest.approx(4 * 4096 * 4096 / 40 / 1e6, rel=1e-3)
    ridge = copying.points[-1]
    assert ridge.y == pytest.approx(700) and multiplying.points[0].y == 700  # the slope ends where the roof begins
    assert curves.roofline(measured(replace(shape(40), flops=0))) is None


def test_the_map_of_cases_says_in_words_where_it_fails() -> None:
    found = heat(past_runs.wrong())
    assert found is not None and found.failing
    assert found.columns[0] == ("float32", ("0.001", "1", "1000"))
    rows = {row.name: [(field.text, field.heat) for field in row.fields] for row in found.rows}
    assert rows["3×127"][:3] == [("20×", 2), ("600×", 3), ("18,000×", 5)]
    assert rows["5×128"] == [("passed", 0)] * 9
    wrong = past_runs.wrong().cases[9]
    pair = (replace(wrong, tolerance_ratio=3e7), wrong, past_runs.wrong().cases[0])  # of one field the worst is shown
    found = heat(replace(past_runs.wrong(), cases=pair, expected_cases=3))
    assert found is not None and found.rows[0].fields[0] == Field("3e+07×", 5)
    crashed = replace(
        past_runs.wrong().cases[9], status=Status.RUNTIME_ERROR, tolerance_ratio=None, values="nan", holdout=True
    )
    found = heat(replace(past_runs.wrong(), cases=(crashed,), expected_cases=1))
    assert found is not None and found.rows[0].name == "1×7, nan, drawn"
    assert found.rows[0].fields[0].text == "RUNTIME_ERROR" and found.rows[0].fields[0].heat == 5
    assert heat(past_runs.forbidden()) is None


def test_a_change_is_shown_line_by_line_and_escaped() -> None:
    before = "".join(f"a{number} = {number}\n" for number in range(20))
    found = changes.change(before, before.replace("a10 = 10\n", 'b = "</pre><script>"  # \u202e\n'))
    assert found is not None and (found.added, found.removed) == (1, 1)
    assert [line.sign for line in found.lines] == ["…", *"   ", "-", "+", *"   ", "…"]
    (added,) = [line for line in found.lines if line.sign == "+"]
    assert added.number == 11 and "&lt;script&gt;" in added.html and "<script>" not in added.html
    assert "\u202e" not in added.html and "u202e" in added.html
    whole = changes.change(None, "x = 1\n")
    assert whole is not None and whole.added is None and [line.sign for line in whole.lines] == [" "]
    assert changes.change(before, None) is None
    hidden = [changes.change(before, before), changes.change(None, "x\n" * 4000)]
    assert [
        "same file" in (one.hidden if one else "") or "4000 lines" in (one.hidden if one else "") for one in hidden
    ] == [True] * 2


def test_a_run_tells_its_rounds_its_causes_and_its_table(history: History, gathered: Gathered) -> None:
    _, (merged, *_) = history
    (told,) = [one for one in gathered.told if one.run.id == merged.id]
    page = run_page.page(told)
    assert [one.status.word for one in page.rounds] == ["WRONG_VALUES", "FORBIDDEN", "PASSED"]
    assert page.rounds[1].cause[0] == "The mean divides by BLOCK, not by N." and page.rounds[1].repair
    assert page.rounds[2].since == "since attempt 2" and page.rounds[2].change is not None
    decided = next(line for line in page.lines if line.holds)
    assert merged.verdict is not None and decided.reason == merged.verdict.reason and not page.otherwise
    assert dict(page.facts)["tokens"] == "31,200 in, 6,300 out" and dict(page.facts)["cost"] == "0.2400 USD"
    assert page.timings is not None and len(page.timings.rows) == 8 * 3 + 11
    assert dict(page.facts)["merged as"] == told.merge_commit[:12] != ""


def test_an_op_shows_its_champion_and_the_overview_its_newest_run(history: History, gathered: Gathered) -> None:
    _, (merged, _, slower, unmeasured) = history
    page = op_page.page("rmsnorm", gathered)
    assert page.shown is not None and page.shown.id == merged.id and page.because == "the champion's"
    assert [row.id for row in page.champions] == [merged.id] and [row.id for row in page.runs] == [slower.id, merged.id]
    first = overview(gathered)
    assert [(row.op, row.run) for row in first.rows] == [("rmsnorm", slower.id), ("softmax", unmeasured.id)]
    assert first.rows[0].ceiling.endswith("%") and first.rows[1].ceiling == "not measured"
    assert first.trend is not None
    trend = {series.name: [point.y for point in series.points] for series in first.trend.series}
    assert trend["ops accepted"] == [50, 50] and trend["attempts passed"] == [pytest.approx(100 / 6), 100]


def test_a_champion_that_fell_is_history(rmsnorm: Op, tmp_path: Path) -> None:
    run = past_runs.run(rmsnorm, tmp_path, past_runs.repaired(rmsnorm)[-1:], past_runs.timed(rmsnorm, 1.2))
    before = op_page.page("rmsnorm", gather.gather(tmp_path, gather.everything, load))
    space = Workspace.open(tmp_path, "rmsnorm")
    champion = space.champion("rmsnorm_triton.py")
    assert champion is not None and champion.run == run.id
    space.demote(champion, "demoted", {})
    after = op_page.page("rmsnorm", gather.gather(tmp_path, gather.everything, load))
    assert [[row.stands for row in page.champions] for page in (before, after)] == [[True], [False]]
    assert (before.because, after.because) == ("the champion's", "the newest run's that was measured")


def test_what_the_audit_establishes_is_told_and_stands_in_the_table(history: History, gathered: Gathered) -> None:
    _, (_, _, slower, _) = history
    (told,) = [one for one in gathered.told if one.run.id == slower.id]
    fault = AuditFinding("A1", Severity.HIGH, Part.CORRECTNESS, "k.py", 7, 1, "", "padding counts", "", "mask it")
    attempt = replace(told.run.attempts[0], report=replace(told.run.attempts[0].report, audit=(fault,)))
    tried = (replace(told.tried[0], attempt=attempt),)
    page = run_page.page(replace(told, run=replace(told.run, attempts=(attempt,)), tried=tried))
    assert page.rounds[0].audit == (fault,)
    assert "of attempt 1 the audit establishes A1 in line 7" in [line.figures for line in page.lines]
    assert "the audit establishes: A1 in line 7: padding counts" in page.why


def test_the_runs_that_get_a_page_are_chosen(history: History, tmp_path: Path) -> None:
    workspaces, (merged, lost, slower, unmeasured) = history
    chosen = {
        "last": gather.gather(workspaces, gather.last, load).chosen,
        "night": gather.gather(workspaces, gather.night, load).chosen,
        "one": gather.gather(workspaces, gather.named(lost.id), load).chosen,
    }
    assert chosen == {"last": {unmeasured.id}, "night": {slower.id, unmeasured.id}, "one": {lost.id}}
    out = site.write(gather.gather(workspaces, gather.named(slower.id), load), tmp_path / "site").parent
    assert [path.name for path in (out / "runs").iterdir()] == [f"{slower.id}.html"]
    text = (out / "ops" / "rmsnorm.html").read_text()
    assert "no page here" in text and f"runs/{merged.id}" not in text  # told of, and not linked
    with pytest.raises(UsageError, match="did you mean"):
        gather.gather(workspaces, gather.named(lost.id[:-1]), load)
    for choice in (gather.everything, gather.last, gather.night):
        with pytest.raises(UsageError, match="--workspaces|--last"):
            gather.gather(tmp_path / "nowhere", choice, load)


def test_the_newest_run_is_the_one_begun_last_whatever_its_op_is_called(rmsnorm: Op, tmp_path: Path) -> None:
    opened = [
        Recorder.open(op, "anthropic", config.load(), tmp_path, past_runs.H200, Silent()).run
        for op in (rmsnorm, load("softmax"), rmsnorm)
    ]
    assert gather.gather(tmp_path, gather.last, load).chosen == {opened[-1].id}, "in one second too"


def test_a_run_that_cannot_be_read_is_named_and_the_others_are_told(rmsnorm: Op, tmp_path: Path) -> None:
    right = past_runs.repaired(rmsnorm)[-1:]
    good, broken, moved = (past_runs.run(rmsnorm, tmp_path, right) for _ in range(3))
    (tmp_path / "runs" / broken.id / "run.json").write_text("{}")
    (tmp_path / "runs" / moved.id).rename(tmp_path / "runs" / "elsewhere")
    (tmp_path / "rmsnorm.git").rename(tmp_path / "away.git")  # what only git holds is not told then
    gathered = gather.gather(tmp_path, gather.everything, load)
    assert [one.run.id for one in gathered.told] == [good.id] and gathered.told[0].tried[0].kernel is None
    assert len(gathered.unreadable) == 2 and not (tmp_path / "rmsnorm.git").exists()
