"""The wheel holds what the package needs, and works from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as pip would lay it into site-packages."""
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site")
    return out / "site"


def test_prompts_configs_templates_and_corpora_ship(unpacked: Path) -> None:
    package = unpacked / "orchestrator"
    for source, shipped in (
        ("prompts", "_data/prompts"),
        ("configs", "_data/configs"),
        ("orchestrator/templates", "templates"),
        ("orchestrator/redteam/corpus", "redteam/corpus"),
    ):
        here = [path for path in (ROOT / source).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        expected = {path.relative_to(ROOT / source) for path in here}
        found = {path.relative_to(package / shipped) for path in (package / shipped).rglob("*") if path.is_file()}
        assert found == expected and found


def test_it_runs_from_another_folder(unpacked: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(unpacked)}
    code = (
        "import orchestrator, runpy, sys\n"
        "assert orchestrator.__file__.startswith(sys.argv.pop(1))\n"
        "runpy.run_module('orchestrator')"
    )
    command = [sys.executable, "-c", code, str(unpacked), "--op", "rmsnorm", "--device", "cpu"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "UNMEASURED" in result.stdout
