"""The pages of patterns: each example is right, the policy takes it, and a prompt quotes the pages its op asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from orchestrator import ops, policy, resources
from orchestrator.config import JudgeSettings
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops.parts import Tag
from orchestrator.prompts import Prompts
from orchestrator.records import Judging, Status
from orchestrator.verifying import KernelFile, verify
from tests.conftest import DEVICE
from tests.reference_examples import EXAMPLES, PAGES, code
from tests.test_op_format import Silent
from tests.test_ops import SHIPPED

JUDGING = Judging("a card", False, {"torch": "2", "triton": "3"}, ())
# The op that a page's example is a kernel of, so that the judge runs and compiles it.
OP_YAML = """
name: {page}
title: the example of {page}
entry: {function}({arguments})
dims: [M, N, K]
inputs: {inputs}
parameters: {parameters}
outputs: {{y: {{shape: [{result}], dtype: float32}}}}
semantics: "{page}"
constraints: []
sweep:
  shapes: [[5, 130, 37], [1, 1, 1], [70, 33, 16], [3, 1100, 7]]
  dtypes: [float32]
  scales: [1.0]
  quick: {{M: 99, N: 2000, K: 99}}
tolerance: {{float32: {{rtol: 1.0e-5, atol: 1.0e-4}}}}
precision: 64.0
bench: {{shapes: [[3, 3, 3]], dtypes: [float32], bytes: M * N, flops: M * N}}
"""
REFERENCE = """
import math
import torch


def {page}_ref({arguments}):
    if {first}.dtype == torch.float32:
        return {page}_ref({wide}).float()
    return {expected}
"""


def test_there_is_a_page_for_each_tag_and_an_example_on_each() -> None:
    assert set(get_args(Tag)) == set(EXAMPLES) <= {page.stem for page in PAGES.glob("*.md")}


def test_the_policy_takes_every_example() -> None:
    for page, example in EXAMPLES.items():
        checked = policy.check(
            code(page).encode(), filename=page, entry=example.function, tensors=frozenset(example.inputs)
        )
        assert not checked.findings, (page, checked.findings)


def test_every_example_computes_what_its_page_says(tmp_path: Path) -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "tests.reference_examples", str(tmp_path)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "all right", done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("page", EXAMPLES)
async def test_the_judge_takes_every_example(judge: LocalExecutor, tmp_path: Path, page: str) -> None:
    """It compiles them for a GPU too."""
    example = EXAMPLES[page]
    dense = {name: {"shape": list(shape)} for name, shape in example.inputs.items()}
    parameters = eval(f"dict({example.parameters})")
    arguments = ", ".join([*example.inputs, *filter(None, [example.parameters])])
    facts = {"page": page, "function": example.function, "arguments": arguments, "result": ", ".join(example.result)}
    widened = [f"{name}.double()" for name in example.inputs] + [f"{name}={name}" for name in parameters]
    (tmp_path / page).mkdir()
    (tmp_path / page / "op.yaml").write_text(OP_YAML.format(**facts, inputs=dense, parameters=parameters))
    (tmp_path / page / "reference.py").write_text(
        REFERENCE.format(**facts, first=next(iter(dense)), wide=", ".join(widened), expected=example.expected)
    )
    kernel = KernelFile(page, code(page).encode())
    (result,) = await verify([kernel], ops.load(page, tmp_path), judge, JudgeSettings(device=DEVICE), Silent())
    assert result.report.status is Status.PASSED, f"{result.report.message}\n{result.report.detail}"


@pytest.mark.parametrize("name", ["matmul", "swiglu", "causal_attention"])
def test_a_prompt_quotes_the_pages_that_the_op_asks_for_and_no_other(name: str) -> None:
    op = ops.load(name, SHIPPED)
    text = Prompts(op, JUDGING, 3).generate().turns[0].text
    titles = {page.stem: page.read_text().splitlines()[0].removeprefix("# ") for page in PAGES.glob("*.md")}
    assert {tag for tag, title in titles.items() if f"# {title}\n" in text} == set(op.spec.tags)
    assert ("tiles" in op.spec.tags) == (name != "swiglu")


def test_pages_ship_with_the_prompts() -> None:
    assert resources.shipped("prompts") / "references" == PAGES
