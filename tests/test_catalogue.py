"""A person's own ops beside the shipped ones: found, begun from a template, and refused where two have one name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator import catalogue, config, opcheck, ops
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from tests.test_cli import orchestrator
from tests.test_ops import SHIPPED, change


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with one op of its own, made of the template."""
    catalogue.add(catalogue.place("mine", tmp_path / "own"), catalogue.template("mine"))
    return tmp_path / "own"


def written(folder: Path) -> None:
    """The reference, as a person would write it."""
    text = (folder / "reference.py").read_text()
    assert "raise NotImplementedError" in text
    lines = [line for line in text.splitlines() if "raise NotImplementedError" not in line]
    lines.insert(len(lines) - 1, "    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)")
    (folder / "reference.py").write_text("\n".join(lines))


def test_both_folders_are_one_catalogue(own: Path) -> None:
    known = catalogue.opened(own)
    assert known.names() == sorted([*ops.names(SHIPPED), "mine"])
    assert known.load("mine").folder == own / "mine" and known.load("rmsnorm").folder == SHIPPED / "rmsnorm"
    with pytest.raises(UsageError, match="did you mean mine"):
        known.load("mien")


def test_a_name_of_both_is_refused(own: Path) -> None:
    shutil.copytree(SHIPPED / "softmax", own / "softmax")
    for ask in (catalogue.opened(own).names, lambda: catalogue.opened(own).load("softmax")):
        with pytest.raises(UsageError, match="own/softmax: an op of this name is shipped"):
            ask()


def test_a_folder_without_op_yaml_is_said_to_be_one(own: Path) -> None:
    (own / "mine" / "op.yaml").unlink()
    with pytest.raises(UsageError, match=r"own/mine has no op\.yaml"):
        catalogue.opened(own).load("mine")


def test_ops_in_the_current_folder_are_found_without_being_named(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own.rename(own.with_name("ops"))
    monkeypatch.chdir(own.parent)
    assert "mine" in catalogue.opened(None).names()
    monkeypatch.chdir("/")
    assert "mine" not in catalogue.opened(None).names()


@pytest.mark.parametrize(
    ("name", "said"),
    [("rmsnorm", "is shipped"), ("mine", "is there already"), ("../x", "no name"), ("Mine", "no name")],
)
def test_a_new_op_may_not_be_called(own: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        catalogue.place(name, own)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_template_is_an_op_once_its_reference_is_written(own: Path, judge: LocalExecutor) -> None:
    fresh = await opcheck.check(ops.load("mine", own), judge)
    assert not fresh.passed and "write here what mine computes" in opcheck.headline(fresh)
    written(own / "mine")
    result = await opcheck.check(ops.load("mine", own), judge)
    assert result.passed and len(result.counted) >= 20, "\n".join(opcheck.lines(result))


@pytest.mark.asyncio(loop_scope="session")
async def test_no_run_starts_on_a_draft(own: Path, judge: LocalExecutor) -> None:
    written(own / "mine")
    with pytest.raises(UsageError, match="own/mine/op.yaml: approved is false, so no run starts on mine; read"):
        await opcheck.require(ops.load("mine", own), judge, config.load().judge)
    change(own / "mine", "approved", True)
    assert "decoys rejected" in await opcheck.require(ops.load("mine", own), judge, config.load().judge)


def test_the_command_begins_an_op_and_lists_it(tmp_path: Path) -> None:
    begun = orchestrator(tmp_path, "ops", "new", "mine", "--ops-dir", "own")
    assert begun.returncode == 0 and "ops check mine --ops-dir own`" in begun.stdout
    assert sorted(path.name for path in (tmp_path / "own" / "mine").iterdir()) == ["op.yaml", "reference.py"]
    assert "\nmine " in orchestrator(tmp_path, "ops", "--ops-dir", "own").stdout
    nowhere = orchestrator(tmp_path, "ops", "--ops-dir", "owm")
    assert nowhere.returncode == 2 and nowhere.stderr.startswith("error: --ops-dir owm is no folder")
