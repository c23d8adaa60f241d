"""What was converted and then written by a model: each reply is replayed through the command, from code to verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.test_cli import orchestrator

HERE = Path(__file__).parent
CONVERTED = {
    "attention": ("attention.py:Attention",),
    "functions_logsumexp": ("functions.py:logsumexp", "--example", f"{HERE}/given/logsumexp.yaml"),
    "selective_scan": ("functions.py:selective_scan", "--example", f"{HERE}/given/scan.yaml"),
    "standardised": ("normed.py:Standardised",),
}


@pytest.mark.long
@pytest.mark.parametrize("op", CONVERTED)
def test_a_models_kernel_of_converted_code_passes(op: str, tmp_path: Path) -> None:
    shutil.copytree(HERE / "replies" / op, tmp_path / "ops" / op / "recorded")
    code, *examples = CONVERTED[op]
    options = (*examples, "--replace", "--agent", "recorded", "--device", "cpu")
    result = orchestrator(tmp_path, "convert", f"{HERE}/given/{code}", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{op}: " in result.stdout and " decoys rejected" in result.stdout
    assert "PASSED: " in result.stdout and "UNMEASURED: Correct" in result.stdout


@pytest.mark.long
def test_a_models_kernels_for_code_and_for_its_gradients_pass(tmp_path: Path) -> None:
    for op in ("normalise", "normalise_backward"):
        shutil.copytree(HERE / "replies" / op, tmp_path / "ops" / op / "recorded")
    options = ("--backward", "kernel", "--replace", "--agent", "recorded", "--device", "cpu")
    result = orchestrator(tmp_path, "convert", f"{HERE}/given/normalise.py:normalise", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("  PASSED: ") == 2 and result.stdout.count("UNMEASURED: Correct") == 2
    assert (tmp_path / "ops" / "normalise" / "autograd.py").is_file()
