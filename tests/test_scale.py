"""The script that measures a batch's driver: that it carries ops out, and that it can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "scale.py"


def test_a_small_batch_is_measured_and_the_result_written(tmp_path: Path) -> None:
    out = tmp_path / "scale.md"
    command = [sys.executable, str(SCRIPT), "--ops", "2", "--resumed", "40", "--compression", "2000"]
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=False)
    text = out.read_text()
    assert text.strip() == done.stdout.strip() and "| 2 | " in text, done.stderr
    assert "A batch of 40 ops, 16 of them left, was gone on with after" in text
    assert done.returncode == 1 and "FAIL: 2 ops at " in text, "waits of milliseconds are no ideal to come near to"
