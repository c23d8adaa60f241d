"""A draft as the files of an op folder: op.yaml, reference.py, CONVERTED.md.

Owns how the folder is written: whole or not at all. What op.yaml and reference.py say is `spec`'s and `reference`'s.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from orchestrator.convert.draft import Draft
from orchestrator.convert.reference import reference
from orchestrator.convert.spec import spec
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.ops.spec import OpSpec
from orchestrator.tree import put_in_place

_NOWHERE = Path("/nonexistent")  # the folder of an op that is not written yet


def op(draft: Draft, folder: Path = _NOWHERE) -> Op:
    """The op that the draft is. Raises UsageError where no op can be made of it."""
    try:
        return Op(folder, OpSpec.model_validate(spec(draft)), reference(draft))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{draft.cut.target.name} makes no op: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from error


def files(draft: Draft, record: str) -> dict[str, str]:
    """The files of the op's folder, by name."""
    text = yaml.dump(spec(draft), Dumper=_Plain, sort_keys=False, width=150, allow_unicode=True)
    return {"op.yaml": text, "reference.py": reference(draft), "CONVERTED.md": record}


def folder(contents: dict[str, str], place: Path) -> None:
    """The op's folder, written beside its place and moved there whole: in place of an earlier one, whose recorded
    replies stay.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as beside:
            made = Path(beside) / place.name
            for file, text in contents.items():
                (made / file).parent.mkdir(parents=True, exist_ok=True)
                (made / file).write_text(text, encoding="utf-8")
            if (place / "recorded").is_dir():
                shutil.copytree(place / "recorded", made / "recorded", symlinks=True)
            put_in_place(made, place)
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}; give --ops-dir DIR") from error


class _Plain(yaml.SafeDumper):
    """Short lists on one line, text of several lines as a block."""


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    short = all(isinstance(one, int | float | str) and len(str(one)) < 40 for one in items)
    nested = all(isinstance(one, list) for one in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short or nested)


def _mapping(dumper: yaml.SafeDumper, items: dict[str, Any]) -> yaml.Node:
    nested = any(isinstance(one, dict) for one in items.values())
    short = len(items) < 8 and sum(len(str(one)) for one in items.values()) < 90
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, flow_style=short and not nested)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Plain.add_representer(list, _list)
_Plain.add_representer(dict, _mapping)
_Plain.add_representer(str, _text)
