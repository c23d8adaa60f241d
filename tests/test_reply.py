"""Which blocks of a reply become which files."""

from __future__ import annotations

import time

import pytest

from orchestrator import reply

CODE = "def rmsnorm_triton(x, w, eps=1e-6):\n    return x\n"


def files(text: str) -> dict[str, bytes]:
    return reply.files(text, "rmsnorm_triton.py", "rmsnorm_triton")


@pytest.mark.parametrize(
    "text",
    [
        f"```python rmsnorm_triton.py\n{CODE}```",
        f'```python title="rmsnorm_triton.py"\n{CODE}```',
        f"```python\n{CODE}```",
        f"```\n{CODE}```",
        f"~~~py\n{CODE}~~~",
        f"````python\n{CODE}````",
        f"**rmsnorm_triton.py**\n\n```python\n{CODE}```",
        f"### `rmsnorm_triton.py`:\n```python\n{CODE}```",
        f"1. The kernel:\n\n   ```python\n   {CODE.replace(chr(10), chr(10) + '   ').rstrip()}\n   ```",
        f"A snippet:\n```python\nx = 1\n```\nand the file:\n```python\n{CODE}```",
        f"First try:\n```python\n{CODE}```\nBetter:\n```python\n{CODE}```",
        f"```python rmsnorm_triton.py\n{CODE}",
    ],
)
def test_the_kernel_is_found(text: str) -> None:
    found = files(text)
    assert list(found) == ["rmsnorm_triton.py"]
    assert found["rmsnorm_triton.py"].decode().strip() == CODE.strip()


def test_the_last_version_counts() -> None:
    assert b"second" in files(f"```python\n{CODE}```\n```python\n{CODE}# second\n```")["rmsnorm_triton.py"]


def test_every_named_file_is_given_to_the_guard() -> None:
    text = f"```python rmsnorm_triton.py\n{CODE}```\n```python ref.py\nx\n```\nconftest.py\n```python\ny\n```\n"
    text += "```\n# sitecustomize.py\nz\n```\n```text ../outside.txt\nq\n```"
    assert set(files(text)) == {"rmsnorm_triton.py", "ref.py", "conftest.py", "sitecustomize.py", "../outside.txt"}


@pytest.mark.parametrize(
    "sentence", ["In `test_correctness.py`, the tolerance is:", "`torch.empty` is:", "As of 3.7.1"]
)
def test_a_quotation_is_no_file(sentence: str) -> None:
    text = f"{sentence}\n\n```python\nrtol = 1e-5\n```\n\n```python rmsnorm_triton.py\n{CODE}```"
    assert list(files(text)) == ["rmsnorm_triton.py"]


@pytest.mark.parametrize(
    "text", ["", "No.", "`inline code`", "```text\nnothing\n```", "```python\na\n```\n```python\nb\n```"]
)
def test_no_code(text: str) -> None:
    assert files(text) == {}


@pytest.mark.parametrize(
    "line", ["_" * 20_000, "`a.py" + "`" * 20_000 + "!", "a/" * 20_000 + "!", "a.py" * 20_000 + "!"]
)
def test_a_long_line_is_read_at_once(line: str) -> None:
    began = time.monotonic()
    assert list(files(f"{line}\n\n```python\n# {line}\n{CODE}```")) == ["rmsnorm_triton.py"]
    assert time.monotonic() - began < 1
