"""What a kernel is compared with, and how each becomes a function in its own process.

The reference run eagerly and by torch.compile is always there; op.yaml names more (the framework's own op, another
library's kernel), and the workspace may hold a champion. None of it is the candidate's code, but each runs confined as
the candidate does, so that the same things slow it down.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from orchestrator.judge.worker import load_function
from orchestrator.measured import AUTOTUNED, BEST, CANDIDATE, CHAMPION, COMPILED, PICKED, REFERENCE, MeasureJob

Entry: TypeAlias = Callable[..., object]
Kind = Literal["function", "compiled", "expression"]

_REFERENCE_FILE = "ref.py"
_GENERATED_BYTES = 200_000  # of the channel's message
_TOLD = "told"  # in the cache: the code that was compiled, by what for, so that it can be said again
_MARK = "async_compile.triton("  # in Inductor's code of a whole graph, not in that of one kernel


@dataclass(frozen=True)
class Spec:
    """One that takes part: a function of a file, as it is or compiled, or an expression over the arguments."""

    name: str
    file: str  # in the job's folder
    function: str
    kind: Kind = "function"
    mode: str = ""  # of torch.compile
    call: str = ""
    module: str = ""

    def as_config(self) -> dict[str, object]:
        """As JSON values, for the process."""
        return asdict(self)


def candidate(job: MeasureJob) -> Spec:
    """The kernel that is to be measured."""
    return Spec(CANDIDATE, job.kernel, job.function)


def baselines(job: MeasureJob) -> list[Spec]:
    """Everything it is compared with."""
    found = [
        Spec(REFERENCE, _REFERENCE_FILE, job.reference),
        Spec(COMPILED, _REFERENCE_FILE, job.reference, "compiled", "default"),
        Spec(AUTOTUNED, _REFERENCE_FILE, job.reference, "compiled", "max-autotune-no-cudagraphs"),
        *(
            Spec(named.name, _REFERENCE_FILE, job.reference, "expression", call=named.call, module=named.module)
            for named in job.baselines
        ),
    ]
    if job.champion:
        found.append(Spec(CHAMPION, job.champion, job.function))
    if job.best:
        found.append(Spec(BEST, job.best, job.function))
    return [spec for spec in found if spec.name not in job.without]


def twin(job: MeasureJob) -> Spec:
    """The baseline that is timed a second time, against itself: one that is the same program in both processes.

    torch.compile times a few configurations and takes the fastest by its own, short, look: two compilations of one
    reference may differ by a tenth, which is no noise of the machine.
    """
    named = [spec for spec in baselines(job) if spec.kind == "expression" and not spec.module]
    return (named or [spec for spec in baselines(job) if spec.kind == "function"] or baselines(job))[0]


class Maker:
    """Makes a contender's function, anew for each shape: torch.compile otherwise gives up after a few of them."""

    def __init__(self, spec: Mapping[str, Any], path: str, module: str) -> None:
        self._kind, self._mode = spec["kind"], spec["mode"]
        for earlier in _picks():
            earlier.unlink()  # what a process picks by its own memory's places is not to be every later one's
        self._seen = set(_written())  # by an earlier measurement
        if self._kind == "expression":
            self._entry = expression(spec["call"], spec["module"])
        else:
            self._entry = load_function(path, module, spec["function"])

    def make(self) -> Entry:
        """The function for the next shape."""
        if self._kind != "compiled":
            return self._entry
        torch.compiler.reset()
        _compile_here()
        compiled: Entry = torch.compile(self._entry, dynamic=False, mode=self._mode)
        return compiled

    def generated(self, inputs: Mapping[str, torch.Tensor]) -> str:
        """The code that torch.compile has written for these inputs, as it stands in its cache, and behind it which
        configurations it picked where it tried several; code of an earlier measurement where none is new."""
        if self._kind != "compiled":
            return ""
        told = _cache() / _TOLD / f"{_form(inputs)}.txt"
        new = sorted({*_written(), *_picks()} - self._seen)
        self._seen.update(new)
        texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in new}
        code = "\n".join(text for path, text in texts.items() if path.suffix == ".py" and _MARK in text)
        picked = "".join(picked_line(text) for path, text in texts.items() if path.suffix != ".py")
        if code:
            told.parent.mkdir(exist_ok=True)
            told.write_text(code, encoding="utf-8")
        elif told.is_file():
            code = told.read_text(encoding="utf-8")
        return code[: _GENERATED_BYTES - len(picked)] + picked


def _cache() -> Path:
    return Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", os.devnull))


def _written() -> list[Path]:
    return list(_cache().rglob("*.py"))


def _picks() -> list[Path]:
    return list(_cache().rglob("*.best_config"))


def _form(inputs: Mapping[str, torch.Tensor]) -> str:
    """What compiling depends on, as a file's name."""
    text = repr([(name, tuple(x.shape), x.stride(), str(x.dtype)) for name, x in inputs.items()])
    return hashlib.sha256(text.encode()).hexdigest()


def picked_line(text: str) -> str:
    """What a *.best_config of Inductor says of blocks, warps and stages, as a comment on a line; "" if nothing."""
    try:
        config = json.loads(text)
        options = {name: config[name] for name in config if name.isupper() or name in ("num_warps", "num_stages")}
    except (ValueError, TypeError):
        return ""
    said = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"\n{PICKED} {said}" if said else ""


def with_picks(earlier: str, generated: str) -> str:
    """What was generated in an earlier sitting, and behind it what a later one picked otherwise."""
    if not earlier:
        return generated
    picked = [line for line in generated.splitlines() if line.startswith(PICKED)]
    return "\n".join([earlier, *(line for line in picked if line not in earlier.splitlines())])


def _compile_here() -> None:
    """No pool of compiling processes: they would outlive the compilation, and the confinement counts them."""
    import torch._inductor.config as inductor

    inductor.compile_threads = 1


def expression(call: str, module: str = "") -> Entry:
    """`call`, a text of the op's author, as a function of the entry's arguments."""
    names: dict[str, object] = {"torch": torch}
    if module:
        importlib.import_module(module)
        top = module.partition(".")[0]
        names[top] = importlib.import_module(top)
    code = compile(call, "<baseline of op.yaml>", "eval")

    def entry(**arguments: object) -> object:
        return eval(code, names, arguments)  # ours, from op.yaml, and confined

    return entry
