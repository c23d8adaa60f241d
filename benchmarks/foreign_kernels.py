"""Honest kernels from elsewhere: what the policy and the judge say of public kernel libraries.

    pip install -e '.[foreign]'
    python benchmarks/foreign_kernels.py [--site DIR] [--no-judge] [--device auto]

Finds the op files of liger-kernel and flag-gems where they are installed (--site: a folder that pip --target filled),
imports nothing of them, and reads them as text. A file that imports from its package is first made to stand alone
(`standalone.py`); all that was changed is said. Each function that launches a kernel is taken for an entry, and the
policy is asked about it as an op would have it asked, which parameters are tensors being told. Then the judge gets
those that compute an op of ours, behind an entry of our signature that is written here.

The aim: no FALLBACK where all computing is in Triton. A refusal is right when the quoted line computes with torch, or
moves data by torch where an op would have to allow that by name; every other FALLBACK is printed under LOOK.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib.util
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from standalone import Standalone, reduced, standalone

from orchestrator import ops, policy, resources
from orchestrator.config import JudgeSettings
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.policy.names import EVIDENCE, GREY_METHODS
from orchestrator.records import Finding, Judging, Report, Status
from orchestrator.source import Function, Source, read
from orchestrator.verifying import KernelFile, verify

PACKAGES = {"liger-kernel": ("liger_kernel", ("ops",)), "flag-gems": ("flag_gems", ("ops", "fused"))}
GREY = frozenset(f".{name}" for name in GREY_METHODS)  # what an op may allow by name
_PLAIN_NOTES = re.compile(r"\b(int|float|bool|str|list|tuple|dict|List|Tuple|Dict|Sequence|dtype|device)\b")
# Messages that name a torch operation, as against an operator on a value that may be a tensor.
_NAMED = re.compile(r"^(torch\.\S+|\.\w+)( of a tensor)? is not on the list|^torch\S* computes|^indexing|^a store into")
_MOVES = re.compile(r"casts or copies|copies (a tensor|it)|\.item |\.tolist |\.copy_ |with the value of a tensor")


@dataclass(frozen=True)
class Asked:
    """What the policy said of one entry: in its whole file, and with only what it reaches."""

    file: str
    entry: str
    whole: Status | None
    own: Status | None
    why: str = ""  # of `own`

    @property
    def look(self) -> bool:
        """A FALLBACK that names no torch operation: it may be wrong."""
        return self.why.startswith("LOOK")


@dataclass(frozen=True)
class Adapter:
    """How an entry of ours is put before a function of a package."""

    package: str
    file: str
    op: str
    entry: str
    tables: dict[str, str]
    up_to: int  # the longest row that the kernel takes, by its own words


ADAPTERS = (
    Adapter(
        "liger_kernel",
        "ops/rms_norm.py",
        "rmsnorm",
        "def rmsnorm_triton(x, w, eps=1e-06):\n    return rms_norm_forward(x, w, eps, 0.0, 'gemma', None)[0]\n",
        {},
        65536,
    ),
    Adapter(
        "flag_gems",
        "ops/rms_norm.py",
        "rmsnorm",
        "def rmsnorm_triton(x, w, eps=1e-06):\n    return rms_norm_forward(x, (x.shape[1],), w, eps)[0]\n",
        {"get_tuned_config": "[triton.Config({'TILE_N': 1024}, num_warps=4)]"},
        1 << 17,
    ),
)


# --- the policy


def op_files(site: Path, package: str, folders: Sequence[str]) -> list[Path]:
    """The single-op files of an installed package."""
    found = [file for folder in folders for file in sorted((site / package / folder).glob("*.py"))]
    return [file for file in found if file.name != "__init__.py"]


def tensors_of(function: Function) -> frozenset[str]:
    """Which parameters are tensors: by annotation, else by a use that only a tensor has. An op would say it."""
    arguments = function.node.args
    used = {
        node.value.id
        for node in ast.walk(function.node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in EVIDENCE | {"size"}
    }
    names = set()
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        note = ast.unparse(argument.annotation) if argument.annotation else ""
        if _PLAIN_NOTES.search(note):
            continue
        if "Tensor" in note or argument.arg in used:
            names.add(argument.arg)
    return frozenset(names)


def entries(source: Source) -> list[Function]:
    """The top-level functions with a launch in them: something subscripted and called."""
    return [f for f in source.host_functions if f.top_level and f.owner is None and any(_launches(f.node))]


def _launches(node: ast.AST) -> Iterator[bool]:
    yield from (True for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Subscript))


def ask(text: str, file: str) -> list[Asked]:
    """The policy's word on each entry of a file's text."""
    source = read(text.encode(), file)
    if isinstance(source, Finding):
        return [Asked(file, "", source.status, source.status, source.message)]
    return [_asked(text, file, function) for function in (entries(source) if source.kernels else [])]


def _asked(text: str, file: str, function: Function) -> Asked:
    tensors = tensors_of(function)
    own = reduced(text, function.name)

    def check(what: str, allow: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
        name = Path(file).name
        return policy.check(what.encode(), filename=name, entry=function.name, allow=allow, tensors=tensors).findings

    findings = check(own)
    why = _why(findings, check(own, GREY)) if findings else ""
    return Asked(file, function.name, _status(check(text)), _status(findings), why)


def _status(findings: Sequence[Finding]) -> Status | None:
    return Report.rejected(tuple(findings)).status if findings else None


def _why(findings: Sequence[Finding], with_grey_allowed: Sequence[Finding]) -> str:
    """One finding that says what it comes to, with its line."""
    gravest = _status(findings)
    if gravest is not Status.FALLBACK:
        return _quoted(str(gravest), next(found for found in findings if found.status is gravest))
    if not with_grey_allowed:
        return _quoted("moves data by torch, nothing more", findings[0])
    for kind, pattern in (("computes with torch", _NAMED), ("moves data by torch", _MOVES)):
        if named := [found for found in findings if pattern.search(found.message)]:
            return _quoted(kind, named[0])
    return _quoted("LOOK", findings[0])


def _quoted(kind: str, finding: Finding) -> str:
    return f"{kind}: {finding.message} | {finding.text[:110]}"


# --- the judge


class _Quiet:
    """Nothing is shown while the judge works."""

    def verifying(self, judging: Judging) -> None:
        """It runs."""
        print(f"  judged on: {judging.device}")

    def verifying_file(self, file: str) -> None:
        """It is asked."""

    def verified(self, file: str, report: Report) -> None:
        """It answered."""


def adapted(adapter: Adapter, site: Path) -> tuple[str, Standalone]:
    """The kernel file that the judge gets, and what was done for it."""
    alone = standalone(site / adapter.package / adapter.file, site, adapter.package, adapter.tables)
    return ("" if alone.stuck else reduced(f"{alone.text}\n\n{adapter.entry}", "rmsnorm_triton")), alone


def limited(op: Op, up_to: int) -> Op:
    """The op without rows longer than a kernel takes by its own words."""
    sweep = op.spec.sweep
    shapes = tuple(shape for shape in sweep.shapes if shape[-1] <= up_to)
    holdout = sweep.holdout.model_copy(update={"always": tuple(s for s in sweep.holdout.always if s[-1] <= up_to)})
    telling = sweep.telling
    if telling is not None:
        elsewhere = {kind: shape for kind, shape in telling.elsewhere.items() if shape[-1] <= up_to}
        telling = telling.model_copy(update={"elsewhere": elsewhere})
    update = {"shapes": shapes, "holdout": holdout, "telling": telling}
    return Op(op.folder, op.spec.model_copy(update={"sweep": sweep.model_copy(update=update)}), op.reference)


async def judge(adapter: Adapter, site: Path, device: str) -> Report | None:
    """Prints what was changed and the verdict; None where the file does not stand alone."""
    text, alone = adapted(adapter, site)
    print(f"{adapter.package}/{adapter.file} as {adapter.op}")
    for line in alone.said:
        print(f"  {line}")
    print("  left out: what the entry does not reach")
    print("  written here:", " ".join(adapter.entry.split()))
    if alone.stuck or not alone.complete:
        print(f"  not judged: {alone.stuck or 'a table of the package is left out'}")
        return None
    op = limited(ops.load(adapter.op, resources.shipped("configs") / "ops"), adapter.up_to)
    print(f"  judged up to N = {adapter.up_to}")
    with tempfile.TemporaryDirectory() as folder:
        executor = LocalExecutor(device, Path(folder) / "judge.log")
        try:
            files = (KernelFile(adapter.file, text.encode()),)
            (result,) = await verify(files, op, executor, JudgeSettings(), _Quiet())
        finally:
            await executor.close()
    print(f"  {result.report.status}: {result.report.message}")
    for found in result.report.findings:
        print(f"    {found.where} {found.message} | {found.text}")
    return result.report


# --- the report


def survey(site: Path, package: str, folders: Sequence[str]) -> list[Asked]:
    """Prints what the policy says of a package; the entries of all files that stand alone."""
    raw: Counter[str] = Counter()
    stuck: Counter[str] = Counter()
    asked: list[Asked] = []
    files = op_files(site, package, folders)
    for file in files:
        name = str(file.relative_to(site))
        as_it_is = ask(file.read_text(encoding="utf-8"), name)
        raw[_overall(as_it_is)] += 1
        alone = standalone(file, site, package)
        if alone.stuck:
            stuck[alone.stuck] += 1
        else:
            asked += ask(alone.text, name)
    print(f"\n{package}: {len(files)} files")
    print("  as they are, importing from their package:", _counted(raw))
    print(f"  do not stand alone: {sum(stuck.values())}")
    for reason, count in stuck.most_common():
        print(f"    {count:4}  {reason}")
    print(f"  entries in the others: {len(asked)}")
    print("    in the whole file:", _counted(Counter(str(one.whole or "accepted") for one in asked)))
    print("    with what they reach:", _counted(Counter(str(one.own or "accepted") for one in asked)))
    print("  accepted:", ", ".join(f"{Path(one.file).stem}.{one.entry}" for one in asked if one.own is None))
    print("  refused:")
    for one in asked:
        if one.own is not None:
            print(f"    {one.own:<13} {one.file} {one.entry}\n{'':<18}{one.why}")
    return asked


def _overall(asked: Sequence[Asked]) -> str:
    if not asked:
        return "no function that launches"
    return "accepted" if all(one.whole is None for one in asked) else "refused"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counter.items())) or "none"


def _site(given: Path | None, package: str) -> Path | None:
    if given is not None:
        return given if (given / package).is_dir() else None
    found = importlib.util.find_spec(package)  # of a top-level package: finds, and imports nothing
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]).parent if places else None


def _version(name: str, site: Path) -> str:
    found = next(iter(metadata.distributions(name=name, path=[str(site)])), None)
    return found.version if found else "of unknown version"


def main() -> int:
    """Print everything; 1 when something was found that should not be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, help="where the packages are, if not in this environment")
    parser.add_argument("--no-judge", action="store_true")
    parser.add_argument("--device", default="auto", choices=["auto", "gpu", "cpu"])
    options = parser.parse_args()
    sites = {name: _site(options.site, package) for name, (package, _) in PACKAGES.items()}
    if missing := [name for name, site in sites.items() if site is None]:
        print(f"not installed: {', '.join(missing)}; pip install -e '.[foreign]', or give --site DIR", file=sys.stderr)
        return 2
    installed = {name: site for name, site in sites.items() if site is not None}
    stack = [f"{name} {metadata.version(name)}" for name in ("torch", "triton")]
    print("; ".join([*(f"{name} {_version(name, site)}" for name, site in installed.items()), *stack]))
    asked = [one for name, site in installed.items() for one in survey(site, *PACKAGES[name])]
    looks = [one for one in asked if one.look]
    print(f"\nLOOK, a FALLBACK that names no torch operation: {len(looks)}")
    for one in looks:
        print(f"  {one.file} {one.entry}: {one.why}")
    verdicts: list[Report | None] = []
    if not options.no_judge:
        print("\nThe judge:")
        by_package = {package: installed[name] for name, (package, _) in PACKAGES.items()}
        verdicts = [asyncio.run(judge(one, by_package[one.package], options.device)) for one in ADAPTERS]
    good = not looks and all(report is not None and report.passed for report in verdicts)
    print(f"\n{'PASS' if good else 'FAIL'}: {len(looks)} to look at, {len(verdicts)} judged")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
