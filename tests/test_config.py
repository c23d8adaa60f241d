"""Settings: precedence, and one line for whatever is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import config, resources
from orchestrator.cli import options
from orchestrator.errors import UsageError


def test_the_shipped_file_is_the_defaults() -> None:
    assert config.load().model_dump() == config.Settings().model_dump()


def test_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("loop: {rounds: 4}\njudge: {limits: {call_s: 7}}\n")
    assert config.load(mine).loop.rounds == 4
    monkeypatch.setenv("ORCHESTRATOR_LOOP__ROUNDS", "5")
    assert config.load(mine).loop.rounds == 5
    assert config.load(mine, ("loop.rounds=6",)).loop.rounds == 6
    resolved = config.load(mine, ("loop.rounds=6",), {"loop": {"rounds": 7}})
    assert resolved.loop.rounds == 7
    assert resolved.judge.limits.call_s == 7 and resolved.judge.limits.compile_s == 120
    assert "call_s: 7" in config.dump(resolved)


def test_a_file_may_be_given_as_c(tmp_path: Path) -> None:
    nightly = resources.shipped("configs") / "nightly.yaml"
    settings = options.settings(None, [str(nightly), "budget.batch.rounds=7"], {})
    assert settings.budget.batch.rounds == 7 and settings.budget.batch.wall_s and settings.measure.require_idle
    with pytest.raises(UsageError, match="give one file of settings"):
        options.settings(tmp_path / "other.yaml", [str(nightly)], {})


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("loop.round=2", "did you mean loop.rounds"),
        ("judge.limits.cal_s=2", "unknown"),
        ("decision.margin=2", "did you mean decision.margin_floor"),
        ("nonsense.x=2", "unknown"),
        ("loop.rounds=many", "loop.rounds"),
        ("loop.rounds=0", "greater than or equal to 1"),
        ("loop.stages=[fly]", "stages"),
        ("loop.stages=[optimize]", "begin with correct"),
        ("loop.stages=[correct, optimize, optimize]", "none comes twice"),
        ("judge.device=tpu", "judge.device"),
        ("loop.rounds", "section.key=value"),
        ("a.b=[", "not YAML"),
    ],
)
def test_what_is_wrong_is_one_line(override: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        config.load(overrides=(override,))
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        (
            "ORCHESTRATOR_LOPP__ROUNDS",
            "ORCHESTRATOR_LOPP__ROUNDS: setting lopp.rounds is unknown; did you mean loop.rounds",
        ),
        ("orchestrator_judges__limits__call_s", "did you mean judge.limits.call_s"),
        ("ORCHESTRATOR__LOOP__ROUNDS", "did you mean loop.rounds"),
        ("ORCHESTRATOR_LOOP__ROUND", "did you mean loop.rounds"),
        ("ORCHESTRATOR_JUDGE__LIMITS__CAL_S", "judge.limits.cal_s"),
    ],
)
def test_a_variable_of_no_setting_is_one_line(monkeypatch: pytest.MonkeyPatch, variable: str, said: str) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(UsageError) as raised:
        config.load()
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_other_variables_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_WEBHOOK_URL", "https://example.org/")
    monkeypatch.setenv("ANOTHER_ORCHESTRATOR_LOPP__ROUNDS", "1")
    assert config.load().loop.rounds == config.Settings().loop.rounds


def test_a_missing_or_broken_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        config.load(tmp_path / "none.yaml")
    (tmp_path / "broken.yaml").write_text("a: [")
    with pytest.raises(UsageError, match="not YAML"):
        config.load(tmp_path / "broken.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(UsageError, match="no mapping"):
        config.load(tmp_path / "list.yaml")
