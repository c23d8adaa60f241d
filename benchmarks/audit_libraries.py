"""What the audit says of public kernel libraries, and a person's verdict on everything grave.

    make foreign                                                 # installs them apart; nothing of them is imported
    python benchmarks/audit_libraries.py [--site build/foreign] [--skeleton]

Audits every file of liger-kernel and flag-gems that defines a kernel, by its source. Each finding of severity high was
read, and its verdict is in benchmarks/audit_libraries.yaml: by file, rule and the line's text, so that a line that
moves keeps it and one that changes loses it. Prints how many findings there are of each rule, and every grave one with
its verdict; exit code 1 where one has none. --skeleton prints entries for those instead.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from orchestrator.audit.engine import audit
from orchestrator.audit.findings import Audit, AuditFinding, Severity
from orchestrator.text import cell, code

PACKAGES = {"liger-kernel": "liger_kernel", "flag-gems": "flag_gems"}
VERDICTS = Path(__file__).with_suffix(".yaml")
MEANINGS = {
    "true": "the fault is there",
    "vendor": "true for the Triton compared with; the file is for a vendor's own release of it",
}


class Verdict(BaseModel):
    """On findings of one rule in one file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    rule: str
    lines: Annotated[tuple[str, ...], Field(min_length=1)]  # hashes of the lines' text
    verdict: Literal["true", "vendor"]
    why: str


def hashed(one: AuditFinding) -> str:
    """A line as it is named in the verdicts."""
    return hashlib.sha256(one.text.encode()).hexdigest()[:12]


def verdicts() -> dict[tuple[str, str, str], Verdict]:
    """By file, rule and line."""
    given = TypeAdapter(list[Verdict]).validate_python(yaml.safe_load(VERDICTS.read_text(encoding="utf-8")) or [])
    return {(one.file, one.rule, line): one for one in given for line in one.lines}


def skeleton(findings: list[AuditFinding], site: Path) -> str:
    """Entries for findings without a verdict, to be filled in by who has read them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        groups.setdefault((str(Path(one.file).relative_to(site)), one.rule), []).append(hashed(one))
    entries = [
        {"file": file, "rule": rule, "lines": list(dict.fromkeys(lines)), "verdict": "?", "why": "?"}
        for (file, rule), lines in groups.items()
    ]
    return yaml.safe_dump(entries, sort_keys=False, width=1000)


def table(found: list[Audit]) -> list[str]:
    """How many findings of each rule, the most frequent first."""
    counts = Counter((one.rule, one.severity) for each in found for one in each.findings)
    rows = [f"| {rule} | {severity} | {count} |" for (rule, severity), count in counts.most_common()]
    return ["| rule | severity | findings |", "|---|---|---|", *rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=Path("build/foreign"))
    parser.add_argument("--skeleton", action="store_true")
    given = parser.parse_args()
    missing = [name for name, folder in PACKAGES.items() if not (given.site / folder).is_dir()]
    if missing:
        print(f"{given.site} holds no {missing[0]}; `make foreign` installs it there", file=sys.stderr)
        return 2
    found = [audit(given.site / folder) for folder in PACKAGES.values()]
    grave = [one for each in found for one in each.findings if one.severity is Severity.HIGH]
    known = verdicts()
    keyed = [(one, known.get((str(Path(one.file).relative_to(given.site)), one.rule, hashed(one)))) for one in grave]
    if given.skeleton:
        print(skeleton([one for one, verdict in keyed if verdict is None], given.site))
        return 0
    versions = {d.name.replace("_", "-"): d.version for d in metadata.distributions(path=[str(given.site)])}
    named = ", ".join(f"{name} {versions[name]}" for name in PACKAGES)
    print(
        f"# The audit of public kernel libraries\n\n{named}, by source; names compared with triton {found[0].triton}."
    )
    files = sum(len(each.files) for each in found)
    unread = [one.file for each in found for one in each.files if one.unread]
    print(f"{files} files with kernels, {len(unread)} of them unreadable{': ' if unread else ''}{', '.join(unread)}.\n")
    print("\n".join(table(found)))
    print(
        f"\n## Every finding of severity high, read\n\n{len(grave)} findings. "
        + "; ".join(f"{name}: {text}" for name, text in MEANINGS.items())
        + ".\n"
    )
    print("| file | line | rule | what stands there | found | verdict | why |\n|---|---|---|---|---|---|---|")
    for one, verdict in keyed:
        place = f"{Path(one.file).relative_to(given.site)} | {one.line} | {one.rule}"
        said = f"{verdict.verdict} | {cell(verdict.why, 400)}" if verdict else "NONE | "
        print(f"| {place} | {cell(code(one.text), 120)} | {cell(one.message, 200)} | {said} |")
    without = sum(verdict is None for _, verdict in keyed)
    print(f"\n{without} without a verdict.")
    return int(without > 0)


if __name__ == "__main__":
    sys.exit(main())
