"""An exported kernel: used by a fresh process that has nothing but its folder, checked, tampered with, proposed.

The verdict is written by hand; the kernels, git, torch.library, torch.compile and the interpreter are real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from orchestrator import config, finish, ops, resources
from orchestrator.attempt import Judged
from orchestrator.cli import app
from orchestrator.errors import OrchestratorError, UsageError
from orchestrator.export import certificate, envelope, package, pull_request, source
from orchestrator.export.bindings import bindings
from orchestrator.export.envelope import Sizes
from orchestrator.ops import Op
from orchestrator.ops.spec import OpSpec
from orchestrator.recorder import Recorder
from orchestrator.records import (
    AuditFinding,
    CaseResult,
    Judging,
    Part,
    Prompt,
    Reply,
    Report,
    Severity,
    Status,
    Usage,
    Verdict,
)
from orchestrator.settle import conclude
from orchestrator.watch import Silent
from tests.conftest import ZOO, zoo_kernel

INTERPRETER = Judging("CPU, Triton's interpreter", True, {"torch": "2.11.0", "triton": "3.6.0"}, ())
ROOT = resources.shipped("configs") / "ops"


def case(dims: dict[str, int], dtype: str, **changes: object) -> CaseResult:
    values = {"max_abs": 1e-3, "max_rel": 1e-3, "tolerance_ratio": 0.2, "precision": 0.9, **changes}
    return CaseResult("a case", dims, dtype, 1.0, False, Status.PASSED, **values)  # type: ignore[arg-type]


def passed(*cases: CaseResult) -> Report:
    judging = INTERPRETER
    return Report(
        *(Status.PASSED, f"{len(cases)} of {len(cases)} cases passed"),
        cases=cases,
        expected_cases=len(cases),
        nonce="n",
        device=judging.device,
        interpreted=True,
        seed=7,
        versions=judging.versions,
    )


def of_rmsnorm() -> Report:
    """Verified from 1x1 to 64x128, in float32 and float16, with eps from 1e-6 to 0.1."""
    return passed(
        case({"M": 1, "N": 1}, "float32", parameters={"eps": 1e-6}),
        case({"M": 64, "N": 128}, "float16", parameters={"eps": 0.1}),
    )


def recorded(op: Op, workspaces: Path, kernel: bytes, report: Report, run_id: str | None = None) -> str:
    """A run whose kernel passed by that report, UNMEASURED; its id."""
    recorder = Recorder.open(op, "scripted", config.load(), workspaces, INTERPRETER, Silent(), run_id)
    folder = recorder.asked(Prompt("", ()), "correct", 1)
    recorder.judged("correct", 1, Reply("", "a model", Usage(0.0)), Judged(report, kernel), folder)
    conclude(recorder, Verdict(finish.Decision.UNMEASURED, "No GPU here."))
    return recorder.run.id


def shipped(name: str) -> Op:
    return ops.load(name, ROOT)


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one run of rmsnorm."""
    folder = tmp_path_factory.mktemp("workspaces")
    recorded(shipped("rmsnorm"), folder, zoo_kernel("good"), of_rmsnorm())
    return folder


@pytest.fixture(scope="module")
def run_id(workspaces: Path) -> str:
    (run,) = (workspaces / "runs").iterdir()
    return run.name


@pytest.fixture(scope="module")
def exported(workspaces: Path, run_id: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    package.write(package.made(source.find(run_id, workspaces, shipped)), folder)
    return folder


def fresh(folder: Path, code: str, **variables: str) -> str:
    """What a process prints that has the folder on its path, and nothing of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "OMP_NUM_THREADS") if name in os.environ}
    environment = {**kept, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [sys.executable, "-W", "always", "-c", textwrap.dedent(code)]
    ended = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def test_a_fresh_process_calls_it_inside_and_outside_and_compiled(exported: Path) -> None:
    lines = fresh(
        exported,
        """
        import warnings
        import torch
        import rmsnorm_kernel
        from rmsnorm_kernel import rmsnorm
        calls = []
        real, ref = rmsnorm_kernel.rmsnorm_triton, rmsnorm_kernel.rmsnorm_ref
        rmsnorm_kernel.rmsnorm_triton = lambda *a: calls.append("kernel") or real(*a)
        rmsnorm_kernel.rmsnorm_ref = lambda *a: calls.append("reference") or ref(*a)

        def went(*arguments, **named):
            calls.clear()
            with warnings.catch_warnings(record=True) as seen:
                y = rmsnorm(*arguments, **named)
            torch.testing.assert_close(y, ref(*arguments, **named), rtol=2e-3, atol=1e-3)
            return calls[-1], [str(one.message) for one in seen]

        x, w = torch.randn(5, 127), torch.randn(127)
        print(went(x, w), went(x.half(), w.half(), eps=0.01))
        for other in ((torch.randn(65, 127), w), (torch.randn(2, 5, 127), w), (x.double(), w.double()), (x, w.half()),
                      (torch.randn(127, 5).t(), w), (x, w, 0.5), (x.bfloat16(), w.bfloat16())):
            print(went(*other))
        print(went(torch.randn(65, 127), w))
        print(went(x.requires_grad_(), w))
        rmsnorm(x, w).sum().backward()
        assert x.grad is not None
        x = x.detach()
        compiled = torch.compile(lambda x, w: rmsnorm(x * 2, w) + 1, backend="aot_eager", fullgraph=True)
        calls.clear()
        torch.testing.assert_close(compiled(x, w), ref(x * 2, w) + 1, rtol=1e-5, atol=1e-5)
        print("compiled", set(calls), "kernel" in calls)
        torch.library.opcheck(torch.ops.rmsnorm_kernel.rmsnorm.default, (x, w, 1e-6))
        print("opcheck")
        rmsnorm_kernel.INTERPRETING = False  # as in a process that was started without TRITON_INTERPRET
        print(went(x, w))
        """,
        TRITON_INTERPRET="1",
    ).splitlines()
    assert lines[0] == "('kernel', []) ('kernel', [])"
    reasons = [
        "M is 65, not in range(1, 65)",
        "a tensor has another number of dims",
        "x is torch.float64",
        "w is torch.float16, not torch.float32",
        "x has the strides (1, 5)",
        "eps is 0.5, not from 1e-06 to 0.1",
        "x is torch.bfloat16",
    ]
    for line, reason in zip(lines[1:8], reasons, strict=True):
        assert line == f"('reference', ['rmsnorm: the reference is used, not the kernel: {reason}'])"
    assert lines[8] == "('reference', [])"  # said once
    assert "a gradient is needed, and the kernel has none" in lines[9]
    assert lines[10].startswith("compiled") and lines[10].endswith("True")
    assert lines[11] == "opcheck"
    assert lines[12].startswith("('reference'") and "on cpu without Triton's interpreter" in lines[12]


def command(*arguments: object) -> tuple[int, str]:
    """The exit code and the output of a command."""
    result = CliRunner().invoke(app, [str(word) for word in arguments])
    if isinstance(result.exception, OrchestratorError):
        return result.exception.exit_code, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def copied(exported: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", str(exported), str(tmp_path / "copy")], check=True)
    return tmp_path / "copy"


def test_the_certificate_holds_and_says_which_file_does_not(exported: Path, tmp_path: Path, run_id: str) -> None:
    code, said = command("verify-certificate", exported)
    assert code == 0 and "files are as certified" in said and run_id in said and "speed: not measured" in said
    assert "2 of 2 cases passed on CPU, Triton's interpreter" in said and "it was judged with 3.6.0" in said
    copy = copied(exported, tmp_path)
    kernel = copy / "rmsnorm_kernel" / "rmsnorm_triton.py"
    text = bytearray(kernel.read_bytes())
    text[-2] ^= 1
    kernel.write_bytes(text)
    code, said = command("verify-certificate", copy)
    assert code == 1 and "not as certified: rmsnorm_triton.py is another file" in said
    (copy / "rmsnorm_kernel" / "ref.py").unlink()
    (copy / "rmsnorm_kernel" / "conftest.py").write_text("")
    code, said = command("verify-certificate", copy)
    assert "ref.py is missing" in said and "conftest.py is not in the certificate" in said


def test_what_is_no_certificate_is_said(exported: Path, tmp_path: Path) -> None:
    code, said = command("verify-certificate", tmp_path)
    assert code == 2 and "holds no certificate.json" in said
    copy = copied(exported, tmp_path)
    (copy / "rmsnorm_kernel" / "certificate.json").write_text("{}")
    code, said = command("verify-certificate", copy)
    assert code == 2 and "is no certificate" in said


def test_the_test_that_is_exported_is_the_one_it_was_judged_by(exported: Path, rmsnorm: Op) -> None:
    for name, data in rmsnorm.workspace_files().items():
        assert (exported / "rmsnorm_kernel" / name).read_bytes() == data
    found = certificate.read(exported / "rmsnorm_kernel" / "certificate.json")
    assert found.files["rmsnorm_triton.py"] == certificate.sha256(zoo_kernel("good"))
    assert found.judged.seed == 7 and found.judged.versions["torch"] == "2.11.0"
    assert found.envelope.dims == {"M": Sizes(1, 64), "N": Sizes(1, 128)}
    workflow = (exported / ".github" / "workflows" / "rmsnorm_kernel.yml").read_text()
    assert "working-directory: rmsnorm_kernel\n" in workflow and "python test_correctness.py --quick" in workflow


def test_bad_input_is_one_line_and_writes_nothing(workspaces: Path, run_id: str, tmp_path: Path) -> None:
    where = ("--workspaces", workspaces)
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    new = tmp_path / "new"
    for arguments, message in (
        (("rmsnorm", "--to", new), "rmsnorm has no champion"),
        (("softmax", "--to", new), "there is no kernel of softmax"),
        (("softmx", "--to", new), "did you mean softmax"),
        ((run_id,), "give --to DIR"),
        ((run_id, "--to", full), "is not empty"),
        ((run_id, "--to", full / "mine.txt"), "is no folder"),
        ((run_id, "--to", new, "--layout", "wheel"), "there are package, kernels"),
        ((run_id, "--to", new, "--pr"), "give both --pr and --repo"),
        ((run_id, "--to", new, "--pr", "--repo", tmp_path / "none"), "there is no such folder"),
        ((run_id, "--to", new, "--pr", "--repo", full), "is no checkout"),
        ((run_id, "--to", new, "--into", "x"), "are of --pr"),
    ):
        code, said = command("export", *arguments, *where)
        assert code == 2 and message in said, said
        assert "\n" not in said.strip()
    assert not new.exists() and [path.name for path in full.iterdir()] == ["mine.txt"]


def test_an_op_means_its_champion(rmsnorm: Op, tmp_path: Path) -> None:
    for name in ("rmsnorm-a", "rmsnorm-b", "rmsnorm-c"):
        recorded(rmsnorm, tmp_path, zoo_kernel("good" if name == "rmsnorm-b" else "llama_order"), of_rmsnorm(), name)
    finish.adopt(finish.find(run := "rmsnorm-b", tmp_path, shipped), "it is good", Silent())
    found = source.find("rmsnorm", tmp_path, shipped)
    assert found.run.id == run and found.kernel == zoo_kernel("good")
    code, said = command("export", "rmsnorm", "--to", tmp_path / "out", "--workspaces", tmp_path)
    assert code == 0 and run in said
    assert "Adopted by a person: it is good" in (tmp_path / "out" / "rmsnorm_kernel" / "DECISION.md").read_text()


def test_what_passed_and_was_not_accepted_is_exported_once_it_is_adopted(rmsnorm: Op, tmp_path: Path) -> None:
    finding = AuditFinding(*("divided-by-block", Severity.HIGH, Part.CORRECTNESS, "k.py", 14, 1, "", ""), *("", ""))
    run = recorded(rmsnorm, tmp_path, zoo_kernel("divides_by_block"), replace(of_rmsnorm(), audit=(finding,)))
    for name in (run, "rmsnorm"):
        code, said = command("export", name, "--to", tmp_path / "out", "--workspaces", tmp_path)
        assert code == 2 and "\n" not in said.strip() and "adopt" in said, said
    finish.adopt(finish.find(run, tmp_path, shipped), "N is a power of two here", Silent())
    assert source.find(run, tmp_path, shipped).attempt.number == 1


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A person's, with a dirty file, a staged one, and a hook that would refuse any commit."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=trunk")
    git(folder, "config", "user.name", "A Person")
    git(folder, "config", "user.email", "person@example.com")
    (folder / "README.md").write_text("theirs\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    (folder / "README.md").write_text("dirty\n")
    (folder / "staged.txt").write_text("staged\n")
    git(folder, "add", "staged.txt")
    for name in ("pre-commit", "reference-transaction"):
        hook = folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    return folder


def test_a_branch_is_prepared_and_nothing_else_is_touched(
    workspaces: Path, run_id: str, repository: Path, tmp_path: Path
) -> None:
    before = git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")
    arguments = ("export", run_id, "--to", tmp_path / "out", "--pr", "--repo", repository, "--workspaces", workspaces)
    code, said = command(*arguments)
    assert code == 0 and "nothing was pushed" in said
    assert (git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")) == before
    (branch,) = (name for name in git(repository, "branch", "--format=%(refname:short)").split() if name != "trunk")
    assert git(repository, "log", "-1", "--format=%an %s %P", branch).split(maxsplit=2)[:2] == ["A", "Person"]
    assert git(repository, "rev-parse", f"{branch}^") == before[1]
    files = git(repository, "ls-tree", "-r", "--name-only", branch).split()
    assert "rmsnorm-kernel/rmsnorm_kernel/__init__.py" in files and "README.md" in files
    assert ".github/workflows/rmsnorm_kernel.yml" in files and "staged.txt" not in files
    workflow = git(repository, "show", f"{branch}:.github/workflows/rmsnorm_kernel.yml")
    assert "working-directory: rmsnorm-kernel/rmsnorm_kernel\n" in workflow
    body = (tmp_path / "out" / "PULL_REQUEST.md").read_text()
    assert "# UNMEASURED: RMSNorm over the last axis" in body and "`rmsnorm-kernel/rmsnorm_kernel`" in body
    code, said = command(*arguments[:3], tmp_path / "again", *arguments[4:])
    assert code == 2 and "has a branch" in said and not (tmp_path / "again").exists()


def test_what_a_repository_has_is_not_replaced(workspaces: Path, run_id: str, repository: Path) -> None:
    found = source.find(run_id, workspaces, shipped)
    with pytest.raises(UsageError, match="README.md already; name another folder with --into"):
        pull_request.prepare(package.made(found), found, repository, ".")


def test_the_hubs_layout(workspaces: Path, run_id: str) -> None:
    files = package.made(source.find(run_id, workspaces, shipped), package.Layout.KERNELS).files
    assert b'name = "rmsnorm-kernel"' in files["build.toml"] and b"[torch-noarch]" in files["build.toml"]
    wrapper = files["torch-ext/rmsnorm_kernel/__init__.py"]
    assert b'custom_op(add_op_namespace_prefix("rmsnorm")' in wrapper and b"from .ref import" in wrapper
    assert "torch-ext/rmsnorm_kernel/certificate.json" in files and "flake.nix" in files


@pytest.mark.parametrize("name", ops.names(ROOT))
def test_the_sizes_of_every_op_follow_from_its_inputs(name: str) -> None:
    spec = shipped(name).spec
    found = bindings(spec)
    assert set(found) == set(spec.dims)


def test_sizes_in_steps_stay_in_steps() -> None:
    spec = shipped("rope").spec
    dims = {"B": 1, "T": 3, "H": 2, "G": 1, "D": 2}
    report = passed(case(dims, "float32"), case({**dims, "D": 64, "T": 9}, "float32"))
    found = envelope.of(spec, report, None)
    assert found.dims["D"] == Sizes(2, 64, 2) and found.dims["T"] == Sizes(3, 9) and found.device == "cpu"
    assert envelope.of(spec, passed(case(dims, "float32"), case({**dims, "D": 7}, "float32")), None).dims["D"].step == 1


def test_beyond_offsets_of_32_bits_only_where_a_case_was() -> None:
    spec = shipped("rmsnorm").spec
    apart = passed(case({"M": 65536, "N": 1}, "float16"), case({"M": 1, "N": 131072}, "float16"))
    whole = passed(case({"M": 65536, "N": 131072}, "float16"))
    assert envelope.of(spec, apart, None).elements == 2**31 - 1
    assert envelope.of(spec, whole, None).elements == 2**33


IN_PLACE = """
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(x_ptr + at, x + y, mask=at < n)
    tl.store(total_ptr + at, x * y, mask=at < n)


def add_into_triton(x, y):
    total = torch.empty_like(x)
    _kernel[(triton.cdiv(x.numel(), 128),)](x, y, total, x.numel(), BLOCK=128)
    return x, total
"""


@pytest.mark.long
def test_an_op_that_works_in_place(rmsnorm: Op, tmp_path: Path) -> None:
    values = yaml.safe_load((ROOT / "vector_add" / "op.yaml").read_text()) | {
        "name": "add_into",
        "entry": "add_into_triton(x, y)",
        "outputs": {
            "x_out": {"shape": ["N"], "dtype_of": "x", "in_place": "x"},
            "product": {"shape": ["N"], "dtype_of": "x"},
        },
    }
    values["bench"].pop("baselines", None)
    values["sweep"].pop("large")  # of which the reference takes parts
    reference = "import torch\n\n\ndef add_into_ref(x, y):\n    return x + y, x * y\n"
    op = Op(tmp_path, OpSpec.model_validate(values), reference)
    workspaces = tmp_path / "workspaces"
    run = recorded(op, workspaces, IN_PLACE.encode(), passed(case({"N": 1}, "float32"), case({"N": 300}, "float32")))
    package.write(package.made(source.find(run, workspaces, lambda _: op)), tmp_path / "out")
    said = fresh(
        tmp_path / "out",
        """
        import torch, warnings
        from add_into_kernel import add_into
        warnings.simplefilter("ignore")
        for size in (200, 301):  # the kernel, the reference
            x, y = torch.randn(size), torch.randn(size)
            was = x.clone()
            total, product = add_into(x, y)
            assert total is x
            torch.testing.assert_close(x, was + y)
            torch.testing.assert_close(product, was * y)
        x, y = torch.randn(200), torch.randn(200)
        was = x.clone()
        compiled = torch.compile(lambda x, y: add_into(x, y)[1] * 2, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x, y), was * y * 2)
        torch.testing.assert_close(x, was + y)
        print("right")
        """,
        TRITON_INTERPRET="1",
    )
    assert said == "right\n"


@pytest.mark.long
@pytest.mark.parametrize("name", ops.names(ROOT))
def test_every_op_is_exported_and_used(name: str, tmp_path: Path) -> None:
    """Its own quick cases through the wrapper: those that the interpreter computes, by kernel and by compiled call."""
    op = shipped(name)
    kernel = zoo_kernel("good") if name == "rmsnorm" else (ZOO / "ops" / f"{name}.py").read_bytes()
    spec = op.spec
    shapes = [dict(zip(spec.dims, shape, strict=True)) for shape in spec.sweep.shapes]
    small = [dims for dims in shapes if all(dims[dim] <= bound for dim, bound in spec.sweep.quick.items())]
    cases = [case(dims, dtype) for dims in small for dtype in spec.sweep.dtypes]
    run = recorded(op, tmp_path, kernel, passed(*cases))
    package.write(package.made(source.find(run, tmp_path, shipped)), tmp_path / "out")
    said = fresh(
        tmp_path / "out" / f"{name}_kernel",
        f"""
        import sys, warnings
        import torch
        sys.path.insert(0, {str(tmp_path / "out")!r})
        warnings.simplefilter("error")
        import test_correctness as test
        from {name}_kernel import {name} as op
        used = 0
        for case in [case for case in test.cases(quick=True) if case.dtype == "float32" and case.scale <= 1][:3]:
            inputs = test.make_inputs(case, "cpu", 3)
            want = test.{spec.reference}(**inputs, **case.parameters)
            compiled = torch.compile(lambda: op(**inputs, **case.parameters), backend="aot_eager", fullgraph=True)
            for got in (op(**inputs, **case.parameters), compiled()):
                pairs = zip(got, want) if isinstance(got, tuple) else [(got, want)]
                for one, other in pairs:
                    assert test.compare(one, other, case.dtype).passed, case.name
                used += 1
        print(used)
        """,
        TRITON_INTERPRET="1",
    )
    assert int(said) > 0


@pytest.mark.gpu
@pytest.mark.long
def test_on_a_gpu_the_kernel_is_called_and_compiled_with_inductor(rmsnorm: Op, tmp_path: Path) -> None:
    """Imported afresh, by torch.compile's own backend; and the certificate's rerun."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    name = torch.cuda.get_device_name()
    cases = (case({"M": 1, "N": 1}, "float32"), case({"M": 8192, "N": 8192}, "bfloat16"))
    report = Report(
        *(Status.PASSED, "2 of 2"), cases=cases, expected_cases=2, nonce="n", device=name, seed=7, versions={}
    )
    run = recorded(rmsnorm, tmp_path, zoo_kernel("good"), report)
    package.write(package.made(source.find(run, tmp_path, shipped)), tmp_path / "out")
    said = fresh(
        tmp_path / "out",
        """
        import torch, warnings
        import torch._inductor.compile_fx  # its own warnings come before ours count
        warnings.simplefilter("error", UserWarning)
        import rmsnorm_kernel
        from rmsnorm_kernel import rmsnorm, rmsnorm_ref
        x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(4096, device="cuda", dtype=torch.bfloat16)
        calls, real = [], rmsnorm_kernel.rmsnorm_triton
        rmsnorm_kernel.rmsnorm_triton = lambda *a: calls.append(1) or real(*a)
        torch.testing.assert_close(rmsnorm(x, w), rmsnorm_ref(x, w), rtol=2e-2, atol=1e-2)
        compiled = torch.compile(lambda x, w: rmsnorm(x * 2, w) + 1, fullgraph=True)
        torch.testing.assert_close(compiled(x, w), rmsnorm_ref(x * 2, w) + 1, rtol=2e-2, atol=2e-2)
        print(len(calls))
        """,
    )
    assert int(said) >= 2
    code, said = command("verify-certificate", tmp_path / "out", "--rerun", "--quick")
    assert code == 0 and "1 of 1 passed" in said, said


@pytest.mark.long
def test_a_rerun_judges_it_again_here(exported: Path) -> None:
    code, said = command("verify-certificate", exported, "--rerun", "--device", "cpu")
    assert code == 0 and "1 of 1 passed" in said, said
    assert json.loads((exported / "rmsnorm_kernel" / "certificate.json").read_text())["judged"]["seed"] == 7
