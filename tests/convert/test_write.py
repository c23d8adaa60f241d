"""An op's folder on disk: whole, in place of an earlier one, or the earlier one as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.convert import write
from orchestrator.errors import UsageError


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_recorded_replies_stay_whatever_ends_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ops" / "op"
    write.folder({"op.yaml": "first"}, place)
    (place / "recorded").mkdir()
    (place / "recorded" / "correct-1.md").write_text("paid for")
    before, rename = files(place), Path.rename

    for failure, raised in ((KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "no space"), UsageError)):

        def fails(path: Path, target: Path, failure: BaseException = failure) -> Path:
            if target == place and (path / "op.yaml").read_text() == "second":
                raise failure
            return rename(path, target)

        with monkeypatch.context() as patched, pytest.raises(raised):
            patched.setattr(Path, "rename", fails)
            write.folder({"op.yaml": "second"}, place)
        assert files(place.parent) == {f"op/{name}": text for name, text in before.items()}

    write.folder({"op.yaml": "second"}, place)
    assert files(place.parent) == {"op/op.yaml": "second", "op/recorded/correct-1.md": "paid for"}
    assert [path.name for path in place.parent.iterdir()] == ["op"]
