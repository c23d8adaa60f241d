"""An op's checker is tried on decoys: a good one rejects all, a weak one is refused with the decoy's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator import config, opcheck, ops, resources
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.ops.parts import Call, Telling, Tolerance
from orchestrator.records import DecoyResult, Fate, OpCheck, Status
from tests.test_cli import orchestrator

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHIPPED = resources.shipped("configs") / "ops"
# Few and small cases, which still reject everything but the op's own large decoy.
SMALL: dict[str, Any] = {"shapes": ((1, 7), (3, 127)), "dtypes": ("float32", "float16")}


def changed(op: Op, sweep: dict[str, Any], **spec: Any) -> Op:
    """The op with a small sweep, changed further."""
    holdout = op.spec.sweep.holdout.model_copy(update={"count": 1, "always": ((1, 66000),)})
    small = op.spec.sweep.model_copy(update={"holdout": holdout, **SMALL, **sweep})
    return Op(op.folder, op.spec.model_copy(update={"sweep": small, **spec}), op.reference)


def through(result: OpCheck) -> dict[str, DecoyResult]:
    return {one.name: one for one in result.counted if one.fate is not Fate.REJECTED}


@pytest.mark.parametrize("name", ops.names(SHIPPED))
async def test_every_shipped_op_rejects_every_decoy(judge: LocalExecutor, name: str) -> None:
    result = await opcheck.check(ops.load(name, SHIPPED), judge)
    assert result.passed and not through(result), "\n".join(opcheck.lines(result))
    assert len(result.counted) >= 15 and all(one.case and one.status for one in result.counted)
    assert opcheck.exit_code([result]) == 0


@pytest.mark.parametrize(
    ("op", "decoy", "by"),
    [
        ("quantize_int8_rowwise", "truncated", Status.LOW_PRECISION),
        ("quantize_int8_rowwise", "half added", Status.LOW_PRECISION),
        ("softmax_backward", "through float32", Status.WRONG_VALUES),
    ],
)
async def test_what_only_the_unrounded_or_the_float64_result_tells_apart(
    judge: LocalExecutor, op: str, decoy: str, by: Status
) -> None:
    """A truncated integer is within a tolerance of 1; a gradient in float32 within any tolerance of float32."""
    result = await opcheck.check(ops.load(op, SHIPPED), judge)
    (found,) = [one for one in result.decoys if one.name == decoy]
    assert found.status is by and (by is Status.LOW_PRECISION or found.case.startswith("float64")), found


@pytest.mark.parametrize(
    ("op", "decoy", "by"),
    [
        ("rmsnorm", "NaN hidden, in long rows", "M2xN131072-nan"),
        ("rmsnorm", "eps as its default, in long rows", "M2xN131072-scale1-eps0.1"),
        ("softmax", "strides of x ignored, in long rows", "M2xN20000-"),
        ("swiglu", "strides of gate for up", "M5xN130-mixed"),
        ("causal_attention", "strides of k for v", "-mixed"),
    ],
)
async def test_what_only_long_rows_or_inputs_that_lie_apart_tell(
    judge: LocalExecutor, op: str, decoy: str, by: str
) -> None:
    """A kernel's path for long rows is another kernel, and its inputs need not lie alike."""
    result = await opcheck.check(ops.load(op, SHIPPED), judge)
    (found,) = [one for one in result.counted if one.name == decoy]
    assert found.fate is Fate.REJECTED and by in found.case, found


async def test_the_small_sweep_is_enough(judge: LocalExecutor, rmsnorm: Op) -> None:
    """Otherwise the tests below show nothing."""
    result = await opcheck.check(changed(rmsnorm, {}), judge)
    assert result.passed, "\n".join(opcheck.lines(result))
    how = {one.name: one.status for one in result.counted}
    assert how["kept in float32"] is Status.WRONG_DTYPE and how["N as BLOCK"] is Status.WRONG_VALUES


NAN = ("nan",)
ALL = ("float32", "float16", "bfloat16")
LOOSE = dict.fromkeys(("float32", "float16"), Tolerance(rtol=1e-2, atol=1e-2))
POWERS = {"shapes": ((1, 128), (2, 64)), "telling": Telling(shape=(4, 128), values=NAN, parameters={"eps": 0.1})}
ONE_ROW = {"shapes": ((1, 7), (1, 127)), "telling": Telling(shape=(1, 130), values=NAN, parameters={"eps": 0.1})}
ONE_EPS = Telling(shape=(5, 130), values=NAN)


@pytest.mark.parametrize(
    ("sweep", "spec", "decoy", "advice"),
    [
        ({}, {"tolerance": LOOSE, "precision": 1e9}, "float32 as TF32", "tighten"),
        ({"telling": None}, {}, "NaN hidden", "sweep.telling.values"),
        ({"telling": ONE_EPS}, {}, "eps as its default", "another value"),
        ({"telling": ONE_EPS, "scales": (100.0,)}, {"precision": 50.0}, "eps as 0", "another value"),
        (POWERS, {}, "N as BLOCK", "no power of two"),
        (ONE_ROW, {}, "transposed", "list values"),
    ],
)
async def test_a_weak_checker_is_refused_with_the_decoy_it_lets_through(
    judge: LocalExecutor, rmsnorm: Op, sweep: dict[str, Any], spec: dict[str, Any], decoy: str, advice: str
) -> None:
    nothing_always = rmsnorm.spec.sweep.holdout.model_copy(update={"count": 1, "always": ()})
    result = await opcheck.check(changed(rmsnorm, {"holdout": nothing_always, **sweep}, **spec), judge)
    assert not result.passed and opcheck.exit_code([result]) == 1
    assert through(result)[decoy].fate is Fate.PASSED, "\n".join(opcheck.lines(result))
    assert advice in through(result)[decoy].detail
    assert decoy in opcheck.lines(result)[0]


async def test_what_is_the_reference_itself_is_said_and_not_counted(judge: LocalExecutor, rmsnorm: Op) -> None:
    result = await opcheck.check(changed(rmsnorm, {}), judge)
    same = {one.name for one in result.decoys if one.fate is Fate.EQUIVALENT}
    assert same == {"M as BLOCK", "one more M", "last M left out", "every other M"}
    assert "M as BLOCK" in opcheck.lines(result)[-1] and "not counted" in opcheck.lines(result)[-1]


async def test_an_author_may_declare_a_decoy_equivalent_but_not_against_the_cases(
    judge: LocalExecutor, rmsnorm: Op
) -> None:
    weak = {"telling": Telling(shape=(5, 130), values=("nan",)), "scales": (1.0,)}
    reasons = {"eps as its default": "callers never pass it", "zeros": "so I say", "none such": "a slip"}
    result = await opcheck.check(changed(rmsnorm, weak, equivalent_decoys=reasons), judge)
    fates = {one.name: one for one in result.decoys}
    assert fates["eps as its default"].fate is Fate.DECLARED
    assert fates["eps as its default"].detail == "callers never pass it"
    assert fates["zeros"].fate is Fate.BROKEN and "take it out" in fates["zeros"].detail
    assert fates["none such"].fate is Fate.BROKEN and "no such decoy" in fates["none such"].detail
    assert not result.passed


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('def raises(x, w, eps):\n    """It raises."""\n    raise KeyError(x)\n', "raises"),
        ("def silent(x, w, eps):\n    return x\n", "docstring of silent"),
        ("def (", "SyntaxError"),
        ("raise SystemExit(0)\n", "raised SystemExit"),
    ],
)
async def test_an_op_s_own_decoys_must_work(
    judge: LocalExecutor, rmsnorm: Op, tmp_path: Path, source: str, said: str
) -> None:
    (tmp_path / "decoys.py").write_text(source)
    broken = Op(tmp_path, changed(rmsnorm, {}).spec, rmsnorm.reference)
    result = await opcheck.check(broken, judge)
    (found,) = through(result).values()
    assert found.fate is Fate.BROKEN and not result.passed and said in f"{found.name} {found.detail}"


async def test_a_checker_that_refuses_the_reference_itself_scores_nothing(judge: LocalExecutor, rmsnorm: Op) -> None:
    op = changed(rmsnorm, {})
    chance = "(torch.randn_like(x_wide) if x.shape[1] == 7 else x_wide) * rstd"  # not where repeating it is tried
    other = Op(op.folder, op.spec, op.reference.replace("x_wide * rstd", chance))
    result = await opcheck.check(other, judge)
    assert through(result)["the op's own files"].fate is Fate.BROKEN and not result.passed
    assert "it is refused where it stands for the kernel" in through(result)["the op's own files"].detail


async def test_a_reference_that_is_not_what_op_yaml_promises_is_refused(judge: LocalExecutor, rmsnorm: Op) -> None:
    op = changed(rmsnorm, {})
    other = Op(op.folder, op.spec, op.reference.replace("w.to(wide)).to(x.dtype)", "w.to(wide))"))
    assert other.reference != op.reference
    result = await opcheck.check(other, judge)
    assert through(result)["the op's own files"].fate is Fate.BROKEN and not result.passed
    assert "float16" in through(result)["the op's own files"].detail


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("torch.nn.functional.rms_norm(x, (x.shape[-1],), w)", ""),  # another eps, within the tolerance
        ("torch.nn.functional.rms_norm(x, (x.shape[-1],))", "computes something else than the reference"),
        ("torch.nn.functional.rms_norm(x)", "raised TypeError"),
    ],
)
async def test_what_a_kernel_is_measured_against_computes_the_same(
    judge: LocalExecutor, rmsnorm: Op, call: str, said: str
) -> None:
    """Else a measurement leaves it out, and the kernel has one rival less than op.yaml says."""
    absent = Call(call="nowhere.f(x)", module="nowhere")
    bench = rmsnorm.spec.bench.model_copy(update={"baselines": {"mine": Call(call=call), "theirs": absent}})
    result = await opcheck.check(changed(rmsnorm, {}, bench=bench), judge)
    details = [one.detail for one in through(result).values()]
    assert result.passed is not bool(said) and [said in one and "bench.baselines.mine" in one for one in details] == (
        [True] if said else []
    )


async def test_no_run_starts_on_an_op_that_fails_its_check(judge: LocalExecutor, rmsnorm: Op) -> None:
    with pytest.raises(UsageError, match="refused for NaN hidden.*ops check rmsnorm"):
        await opcheck.require(changed(rmsnorm, {"telling": None}), judge, config.load().judge)
    weak = config.load(flags={"judge": {"weak_ops": True}}).judge
    borne = await opcheck.require(changed(rmsnorm, {"telling": None}), judge, weak)
    assert "refused for NaN hidden" in borne and borne.endswith("it runs all the same (judge.weak_ops)")
    broken = Op(rmsnorm.folder, rmsnorm.spec, rmsnorm.reference.replace("    wide = ", "    assert False\n    wide = "))
    with pytest.raises(UsageError, match="refused: BROKEN"):
        await opcheck.require(broken, judge, weak)
    assert "32 of 32" in await opcheck.require(changed(rmsnorm, {"dtypes": ALL}), judge, config.load().judge)


async def test_the_command_prints_the_score(tmp_path: Path) -> None:
    result = orchestrator(tmp_path, "ops", "check", "rmsnorm", "--device", "cpu")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("rmsnorm: 32 of 32 decoys rejected in ")
    unknown = orchestrator(tmp_path, "ops", "check", "rmsnrm")
    assert unknown.returncode == 2 and "did you mean rmsnorm" in unknown.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("import torch\n", "import torch\nimport nowhere_at_all\n"), "reference.py cannot be imported"),
        (("    wide = ", "    raise KeyError('x')\n    wide = "), "reference.py: rmsnorm_ref"),
        (("import torch\n", "import torch\nraise SystemExit(0)\n"), "reference.py cannot be imported"),
        (("    wide = ", "    raise SystemExit(0)\n    wide = "), "reference.py: rmsnorm_ref"),
        (("    wide = ", "    assert x.dtype != torch.float16\n    wide = "), "reference.py: rmsnorm_ref"),
        (("    return (", "    return [1] or ("), "returns list where a tensor is expected"),
        (("w.to(wide)).to(x.dtype)", "w.to(wide)).to(x.dtype)[:, :1]"), "op.yaml (outputs) promises"),
        (("x_wide * rstd", "x_wide * (rstd + 1e-7 * torch.randn_like(rstd))"), "when it is called again"),
    ],
)
async def test_a_reference_that_cannot_be_compared_with_is_one_line_that_names_the_file(
    judge: LocalExecutor, rmsnorm: Op, change: tuple[str, str], said: str
) -> None:
    assert rmsnorm.reference.count(change[0]) == 1
    op = changed(rmsnorm, {})
    result = await opcheck.check(Op(op.folder, op.spec, op.reference.replace(*change)), judge)
    assert not result.passed and said in opcheck.headline(result) and "\n" not in opcheck.headline(result)
    with pytest.raises(UsageError, match="rmsnorm: refused: BROKEN"):
        await opcheck.require(Op(op.folder, op.spec, op.reference.replace(*change)), judge, config.load().judge)
