"""What runs cost, and what the next ones are likely to: sums that say what they do not know."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator import accounts, config, costs
from orchestrator.attempt import Judged
from orchestrator.ledger import Ledger
from orchestrator.ops import Op
from orchestrator.records import Attempt, Cost, Report, Run, Status, Usage, from_json
from tests.measurements import measured, shape
from tests.test_finish import GOOD, decided, recorder_of


def attempts(*usages: Usage) -> list[Attempt]:
    report = Report(Status.WRONG_VALUES, "wrong")
    return [
        Attempt(number, "correct", number, "openai", "m", "0" * 64, report, usage)
        for number, usage in enumerate(usages, 1)
    ]


PRICED, UNPRICED = Usage(1.0, 100, 20, cost_usd=0.5), Usage(1.0, 100, 20)
REPLAYED, SILENT = Usage(0.0, requests=0), Usage(1.0)


@pytest.mark.parametrize(
    ("usages", "gpu_s", "said"),
    [
        ((), 0.0, ""),
        ((REPLAYED,), 0.0, ""),
        ((REPLAYED,), 41.26, "41 GPU-seconds"),
        ((PRICED, PRICED), 0.0, "200 tokens in, 40 out, 1.0000 USD"),
        ((PRICED, REPLAYED), 3.0, "100 tokens in, 20 out, 0.5000 USD, 3 GPU-seconds"),
        ((PRICED, UNPRICED), 0.0, "200 tokens in, 40 out, price not known"),
        ((PRICED, SILENT), 0.0, "at least 100 tokens in, 20 out, price not known"),
        ((SILENT,), 0.0, "tokens not known, price not known"),
    ],
)
def test_what_is_not_known_is_said(usages: tuple[Usage, ...], gpu_s: float, said: str) -> None:
    assert costs.told(costs.of_attempts(attempts(*usages), gpu_s)) == said


def test_a_run_holds_the_seconds_for_which_it_held_a_gpu(rmsnorm: Op, tmp_path: Path) -> None:
    judged = Judged(replace(GOOD, seconds={"total": 4.5}), b"fast = 1\n")
    run = decided(recorder_of(rmsnorm, tmp_path, judged), measured(shape(40), seconds=30.0))
    assert run.cost == Cost(calls=1, tokens_known=False, usd_known=False, gpu_s=34.5)
    folder = tmp_path / "runs" / run.id
    assert from_json(Run, (folder / "run.json").read_text()).cost == run.cost
    assert "| cost | tokens not known, price not known, 34 GPU-seconds |" in (folder / "DECISION.md").read_text()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Ledger]:
    """Two runs of one prompt, one of another, one replayed, all of rmsnorm."""
    ledger = Ledger(tmp_path)
    enter(ledger, "a", "MERGE", (PRICED, PRICED), gpu_s=100.0)
    enter(ledger, "b", "ABANDON", (PRICED,))
    enter(ledger, "c", "UNMEASURED", (UNPRICED,), model="other", prompt="2" * 64)
    enter(ledger, "d", "MERGE", (REPLAYED,))
    yield ledger
    ledger.close()


def enter(
    ledger: Ledger,
    run: str,
    decision: str,
    usages: tuple[Usage, ...],
    model: str = "m",
    prompt: str = "1" * 64,
    gpu_s: float = 0.0,
) -> None:
    about = {"op": "rmsnorm", "branch": "", "baseline": "", "started": run, "agent": "openai", "error": ""}
    ledger.put("runs", {"run": run, **about, "seconds": 1.0, "gpu_s": gpu_s})
    ledger.put("decisions", {"run": run, "decision": decision, "reason": ""})
    for number, usage in enumerate(usages, 1):
        key = {"run": run, "attempt": number, "stage": "correct", "round": number}
        ledger.put(
            "attempts", {**key, "agent": "openai", "model": model, "prompt_sha256": prompt if number == 1 else ""}
        )
        spent = ("input_tokens", "output_tokens", "requests", "cost_usd")
        ledger.put(
            "model_calls", {**key, "answered": 1, "model": model, **{name: getattr(usage, name) for name in spent}}
        )


def test_per_accepted_kernel_by_model_and_first_prompt(index: Ledger) -> None:
    first, second = accounts.groups(index)
    assert (first.model, first.prompt_sha256, first.runs, first.accepted) == ("m", "1" * 64, 2, 1)
    assert first.cost == Cost(3, 300, 60, 1.5, gpu_s=100.0), "what was spent in vain is in it"
    assert (second.model, second.runs, second.accepted, second.cost.usd_known) == ("other", 1, 1, False)
    screen = io.StringIO()
    Console(file=screen, width=200).print(accounts.table((first, second)))
    assert screen.getvalue().splitlines()[1].split() == [
        *("rmsnorm", "m", "1" * 12, "1", "of", "2", "3", "360", "1.5000", "100", "360", "1.5000"),
    ]
    assert screen.getvalue().splitlines()[2].split() == [
        *("rmsnorm", "other", "2" * 12, "1", "of", "1", "1", "120", "?", "0", "120"),
    ]


def test_an_estimate_is_the_mean_of_earlier_runs_where_there_are_any(index: Ledger, rmsnorm: Op) -> None:
    named = config.load(overrides=("agent.model=m",))
    found = accounts.estimate(index, rmsnorm, named)
    assert (found.earlier, found.calls, found.tokens, found.usd) == (2, 2, 180, 0.75)
    assert accounts.estimated([found]) == (
        "estimate for rmsnorm: about 2 calls, 180 tokens, 0.75 USD, as the mean of 2 earlier runs",
    )
    anyone = accounts.estimate(index, rmsnorm, config.load())
    assert anyone.earlier == 3 and anyone.usd is None, "one of them has no price"
    assert "price not known" in accounts.estimated([anyone])[0]


def test_without_earlier_runs_an_estimate_says_what_it_leaves_out(index: Ledger, rmsnorm: Op) -> None:
    found = accounts.estimate(index, rmsnorm, config.load(overrides=("agent.model=never", "loop.rounds=2")))
    assert (found.earlier, found.calls, found.usd) == (0, 6, None), "two rounds of three stages that ask a model"
    assert found.tokens and found.tokens > 6 * 1000
    (said,) = accounts.estimated([found])
    assert "at most 6 calls" in said and "replies and reports are not in it" in said
    assert len(accounts.estimated([found, accounts.estimate(index, rmsnorm, config.load())])) == 2
    assert accounts.estimated([]) == ()
