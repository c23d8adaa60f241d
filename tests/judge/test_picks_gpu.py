"""torch.compile picks by our clock, and the same each time. Needs a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DEVICE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE != "gpu", reason="ORCHESTRATOR_TEST_DEVICE is not gpu"),
]


def test_a_reference_compiled_again_is_the_same_baseline() -> None:
    script = Path(__file__).with_name("picking.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert all(len(times) > 1 for times in found["milliseconds"]), (
        "each of several configurations, in every compilation"
    )
    assert all(len(picked) == 1 and picked == found["picked"][0] for picked in found["picked"])
