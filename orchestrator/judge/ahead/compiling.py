"""One specialization of one kernel through Triton's compiler, for a target that need not be here.

Imported only where triton does not interpret: there the language's own functions can be compiled.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import io
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.amd.compiler import HIPOptions
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions
from triton.compiler import ASTSource, CompilationError, code_generator, make_backend
from triton.runtime import cache, jit

from orchestrator.judge.ahead import facts
from orchestrator.judge.ahead.records import CompileResult, Specialization
from orchestrator.judge.interpreter import host

_AMD_THREADS = 1024  # the most of one program on AMD, where a warp has 64
_ERROR = 4000  # characters
_OPTIONS = {*CUDAOptions.__dataclass_fields__, *HIPOptions.__dataclass_fields__}

Functions = dict[tuple[str, int], Any]


def load(kernel_file: Path) -> Functions:
    """Every kernel and helper that an import of the file makes, by qualified name and first line. Raises as it does."""
    assert code_generator  # imported late by Triton: here it is imported once, not in each fork
    cache.triton_key = lambda: triton.__version__  # it reads hundreds of megabytes, for a cache that lives in scratch
    triton.knobs.compilation.always_compile = True  # a candidate may have put files where Triton's cache is
    host.stand_in()
    spec = importlib.util.spec_from_file_location(kernel_file.stem, kernel_file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[kernel_file.stem] = module
    with _made() as functions:
        spec.loader.exec_module(module)
    return functions


@contextlib.contextmanager
def _made() -> Iterator[Functions]:
    functions: Functions = {}
    original = jit.JITFunction.__init__

    def remembered(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        original(self, fn, *args, **kwargs)
        functions[fn.__qualname__, fn.__code__.co_firstlineno] = self

    jit.JITFunction.__init__ = remembered
    try:
        yield functions
    finally:
        jit.JITFunction.__init__ = original


def compile_one(functions: Functions, specialization: Specialization, target: str) -> CompileResult:
    """Compile it, in a process that is used for nothing else afterwards."""
    kernel = specialization.kernel
    if specialization.limit:
        return CompileResult(kernel, target, ok=False, limit=specialization.limit)
    function = functions.get((kernel, specialization.line))
    if function is None:
        return CompileResult(kernel, target, ok=False, limit="the kernel is made at run time, not by an import")
    begun, printed = time.perf_counter(), io.StringIO()
    with contextlib.redirect_stdout(printed):  # ptxas' log comes that way
        try:
            made = _compile(functions, function, specialization, _gpu(target))
        except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the kernel's
            seconds = time.perf_counter() - begun
            text = _words(error, function, functions)
            return CompileResult(kernel, target, ok=False, error=text[:_ERROR], seconds=round(seconds, 4))
    return CompileResult(
        kernel,
        target,
        ok=True,
        seconds=round(time.perf_counter() - begun, 4),
        compiled=replace(
            facts.of(made, kernel, printed.getvalue()),
            line=specialization.line,
            types=specialization.plain_types(),
            constants=specialization.plain_constants(),
        ),
    )


def _compile(functions: Functions, function: Any, specialization: Specialization, target: Any) -> Any:
    unknown = set(specialization.options) - _OPTIONS
    if unknown:
        raise KeyError(f"Keyword argument {sorted(unknown)[0]} was specified but unrecognised")
    backend = make_backend(target)
    triton.runtime.driver.set_active(host.Driver(target))
    if hasattr(triton.knobs.nvidia, "dump_ptxas_log"):
        triton.knobs.nvidia.dump_ptxas_log = True
    source = ASTSource(
        function,
        {name: _decode(kind, functions) for name, kind in specialization.types.items()},
        {tuple(path): _decode(value, functions) for path, value in specialization.constants},
        {tuple(path): backend.parse_attr(letters) for path, letters in specialization.attributes},
    )
    options = {name: _decode(value, functions) for name, value in specialization.options.items()}
    if target.backend == "hip" and "num_warps" in options:
        # Chosen for a card with warps of 32: there, as many threads at most as AMD has.
        options["num_warps"] = min(options["num_warps"], _AMD_THREADS // target.warp_size)
    return triton.compile(source, target=target, options=options)


def _gpu(target: str) -> Any:
    if target.startswith("sm_"):
        return GPUTarget("cuda", int(target[3:]), 32)
    return GPUTarget("hip", target, 64)


def _decode(value: Any, functions: Functions) -> Any:
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        parts = [_decode(item, functions) for item in value["tuple"]]
        return collections.namedtuple("Fields", value["fields"])(*parts) if "fields" in value else tuple(parts)  # noqa: PYI024
    if "dtype" in value:
        return tl.dtype(value["dtype"])
    return functions[value["function"], value["line"]]


def _words(error: Exception, kernel: Any, functions: Functions) -> str:
    """The innermost place, which is where the kernel must be changed, then the error, then what it caused."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(chain) < 8:
        chain.append(link)
        link = link.__cause__
    places = [_place(each, functions) for each in chain if isinstance(each, CompilationError)]
    place = next((place for place in reversed(places) if place), "") or _where(kernel, 1)
    reason = _reason(chain[-1])
    excerpts = [str(each).strip().removesuffix(reason).strip() for each in reversed(chain)]
    return "\n".join([place, f"{type(chain[-1]).__name__}: {reason}", *filter(None, excerpts)])


def _reason(error: BaseException) -> str:
    """What an error says, without the excerpt of the source that Triton begins with."""
    said = getattr(error, "error_message", None) or str(error)
    return said.strip() or type(error).__name__


def _place(error: Any, functions: Functions) -> str:
    for function in functions.values():
        if function.src == error.src and error.node is not None:
            return _where(function, error.node.lineno)
    return ""


def _where(function: Any, number: int) -> str:
    """The line of the file, and what it says, for a line of the function counted from its `def`."""
    file, begins = jit.get_jit_fn_file_line(function)
    number += begins - 1
    line = Path(file).read_text(errors="replace").splitlines()[number - 1].strip()
    return f"{Path(file).name}, line {number}, in {function.__name__}: {line}"
