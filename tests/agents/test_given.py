"""A person's file as what a run begins with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import kept, reply
from orchestrator.agents import Request
from orchestrator.agents.choose import AgentOptions, choose
from orchestrator.agents.given import PERSON, Given, Nobody
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.asking import begins_with
from orchestrator.errors import UsageError
from orchestrator.ops import Op

FENCED = '"""Doc:\n\n```python other.py\nx = 1\n```\n````\n"""\ndef f(x):\n    return x\n'


@pytest.mark.parametrize("code", ["def f(x):\n    return x\n", FENCED, "def f(x): return x"])
async def test_round_0_is_the_file_and_nothing_else(request_: Request, code: str) -> None:
    answer = await Given(Nobody(), code, "f_triton.py").propose(replace(request_, round=0))
    assert reply.files(answer.text, "f_triton.py", "f") == {"f_triton.py": code.rstrip("\n").encode() + b"\n"}
    assert (answer.agent, answer.usage.requests, answer.usage.cost_usd) == (PERSON, 0, None)


async def test_a_run_that_is_taken_up_again_begins_with_what_it_began_with(request_: Request) -> None:
    first = await Given(Nobody(), "old = 1\n", "f_triton.py").propose(replace(request_, round=0))
    kept.keep(first, request_.folder)
    assert await Given(Nobody(), "new = 1\n", "f_triton.py").propose(replace(request_, round=0)) == first


async def test_later_rounds_are_asked_of_the_agent(request_: Request) -> None:
    with pytest.raises(RepliesExhausted, match="ANTHROPIC_API_KEY"):
        await Given(Nobody(), "x = 1\n", "f_triton.py").propose(request_)


def test_without_a_key_nobody_is_asked_and_what_was_recorded_only_in_so_many_words(rmsnorm: Op) -> None:
    options = {"op_recorded": rmsnorm.recorded, "single_op": True, "options": AgentOptions(), "announce": print}
    agent, why = choose("auto", **options, given=True)  # type: ignore[arg-type]
    assert agent.name == "nobody" and "none of ANTHROPIC_API_KEY" in why
    assert choose("recorded", **options, given=True)[0].name == "recorded"  # type: ignore[arg-type]


def test_what_is_no_kernel_file_is_refused_before_anything_begins(rmsnorm: Op, tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# \xfc\n")
    (tmp_path / "large.py").write_bytes(b"#" * 5_000_000)
    for name, said in (("latin.py", "not UTF-8"), ("large.py", "larger than"), ("none.py", "no file")):
        with pytest.raises(UsageError, match=said):
            begins_with(str(tmp_path / name), Nobody(), rmsnorm)
    assert begins_with(None, agent := Nobody(), rmsnorm) is agent
