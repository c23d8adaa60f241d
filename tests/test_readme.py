"""The README shows the help that there is. `python tests/test_readme.py` puts it there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(## Options\n\n```\n).*?(\n```)", re.DOTALL)


def current_help() -> str:
    environment = os.environ | {"COLUMNS": "110", "TERM": "dumb", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "orchestrator", "--help"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


def test_the_help_is_the_current_one() -> None:
    match = BLOCK.search(README.read_text())
    assert match, "README.md has no block of options"
    assert match[0] == f"{match[1]}{current_help()}{match[2]}", "run `make readme`"


def test_both_commands_are_there() -> None:
    text = README.read_text()
    assert "pip install -e . && python -m orchestrator --op rmsnorm" in text
    assert "pip install -e '.[dev]' && python -m pytest -n auto --maxprocesses 8 --dist loadfile" in text


if __name__ == "__main__":
    help_text = current_help()
    README.write_text(BLOCK.sub(lambda match: match[1] + help_text + match[2], README.read_text()))
