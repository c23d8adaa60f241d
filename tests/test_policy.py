"""The policy against its zoo: every cheat refused, every honest kernel accepted, and no input that makes it raise."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator import policy
from orchestrator.records import Report, Status
from orchestrator.redteam.entries import CORPUS

ZOO = Path(__file__).parent / "zoo"
GIVEN = CORPUS / "given"
REDTEAM = sorted((GIVEN / "cheats").glob("*.py"))
CHEATS = sorted((ZOO / "policy" / "cheats").glob("*.py"))
HONEST = sorted((GIVEN / "honest").glob("*.py")) + sorted((ZOO / "policy" / "honest").glob("*.py"))
ENTRY = "rmsnorm_triton"

# The corpus leaves these to the op's promise: a masked load without `other`, offsets in int32, a print in a kernel.
UNPRESCRIBED = {"c161_device_print", "c190_mask_no_other", "c203_int32_offsets"}
# Honest to the eye: only numbers, or the judge's other checks, can tell.
NUMERIC = frozenset(
    """c102 c106 c113 c114 c125 c128 c161 c181 c182 c185 c187 c188 c190 c191 c193 c194 c196 c197 c199 c200 c201
    c202 c203 c205 c206 c208 c211 c222 c223""".split()  # noqa: SIM905
)


def check(data: bytes, **options: object) -> policy.PolicyResult:
    return policy.check(data, filename="k.py", entry=ENTRY, **options)  # type: ignore[arg-type]


def status(result: policy.PolicyResult) -> Status | None:
    return Report.rejected(result.findings).status if result.findings else None


def header(path: Path) -> dict[str, str]:
    """The `key: value` pairs of the line that describes a file of the zoo."""
    line = next(line for line in path.read_text().splitlines() if line.startswith(("# status:", "# honest:")))
    return dict(part.split(": ", 1) for part in line[2:].split(" | ") if ": " in part)


@pytest.mark.parametrize("path", REDTEAM, ids=lambda path: path.stem)
def test_redteam_cheat(path: Path) -> None:
    result = check(path.read_bytes())
    caught_by = path.read_text().splitlines()[0].partition("should be caught by:")[2]
    if "static" in caught_by and path.stem not in UNPRESCRIBED:
        assert not result.accepted
    if path.stem[:4] in NUMERIC:
        assert result.accepted, result.findings


@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.stem)
def test_cheat(path: Path) -> None:
    result = check(path.read_bytes())
    assert status(result) == header(path)["status"], result.findings
    assert all(finding.where.startswith("k.py:") and finding.message and finding.advice for finding in result.findings)


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
def test_honest(path: Path) -> None:
    options = {} if path.parent.parent == GIVEN else header(path)
    result = check(path.read_bytes(), allow=frozenset(options.get("allow", "").split(",")))
    assert result.findings == ()
    assert len(result.notes) == int(options.get("notes", "0")), result.notes


def test_the_zoo_is_there() -> None:
    assert len(REDTEAM) > 150
    assert len(CHEATS) > 150
    assert len(HONEST) > 40


# --- what an op may allow


def test_casts_are_refused_unless_the_op_names_them() -> None:
    data = (GIVEN / "cheats" / "c096_host_cast.py").read_bytes()
    refused = check(data)
    assert {finding.status for finding in refused.findings} == {Status.FALLBACK}
    assert all("host operations" in finding.advice for finding in refused.findings)
    allowed = check(data, allow=frozenset({".to", ".float"}))
    assert allowed.accepted
    assert len(allowed.notes) == 2
    assert any(".float" in note for note in allowed.notes)


def test_assembly_is_accepted_and_said() -> None:
    result = check((GIVEN / "cheats" / "c106_inline_asm.py").read_bytes())
    assert result.accepted
    assert len(result.notes) == 1
    assert "inline assembly" in result.notes[0]


@pytest.mark.parametrize(
    ("name", "allow"),
    [
        ("item", ".item"),
        ("float_value", ".item"),
        ("clone", ".clone"),
        ("cat", "torch.cat"),
        ("in_place", ".mul_"),
        ("augmented", "*"),
        ("bitcast_pointer", "tl.pointer_type"),
        ("bitcast_pointer_dtype", "tl.pointer_type"),
    ],
)
def test_an_op_may_allow_by_name(name: str, allow: str) -> None:
    data = (ZOO / "policy" / "cheats" / f"{name}.py").read_bytes()
    result = check(data, allow=frozenset({allow}))
    assert result.accepted, result.findings
    assert result.notes


# --- what the entry's parameters are

HEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, n):
    tl.store(x_ptr, n)


"""


def test_the_op_may_say_which_parameters_are_tensors() -> None:
    data = (HEAD + f"def {ENTRY}(x, alpha):\n    _k[(1,)](x, alpha * 2)\n    return x\n").encode()
    assert status(check(data)) is Status.FALLBACK
    assert check(data, tensors=frozenset({"x"})).accepted
    assert status(check(data, tensors=frozenset({"x", "alpha"}))) is Status.FALLBACK


def test_a_missing_entry_is_named() -> None:
    found = check(HEAD.encode()).findings
    assert [finding.status for finding in found] == [Status.COMPILE_ERROR]
    assert ENTRY in found[0].message


def test_a_finding_quotes_its_line() -> None:
    data = (HEAD + f"def {ENTRY}(x):\n    _k[(1,)](x, 1)\n    return x.mean(  )  # why not\n").encode()
    (found,) = check(data).findings
    assert (found.where, found.text) == ("k.py:13", "return x.mean(  )  # why not")
    assert "kernel" in found.advice


@pytest.mark.parametrize(
    "statement",
    [
        "n = x.shape[0] * 2 + x.stride(0) // 2 - x.element_size() % 4",
        "n = M = x.numel(); n <<= 1; n = -n",
        "n = sum(x.shape) + max(x.shape) + min(1, x.ndim)",
        "n = triton.cdiv(x.shape[0], 128) * triton.next_power_of_2(x.size(-1))",
        "n = {torch.float16: 2}.get(x.dtype, 4) * x.dim()",
        "n = 1 if x.dtype == torch.float32 and x.device.type == 'cuda' else 2",
        "n = len(x) + (x.shape == (1, 2))",
        "n = [s * 2 for s in x.shape][0]",
        "n = (x.shape + (1,))[0]",
    ],
)
def test_integers_are_free(statement: str) -> None:
    data = (HEAD + f"def {ENTRY}(x):\n    {statement}\n    _k[(n,)](x, n)\n    return x\n").encode()
    assert check(data).findings == ()


# --- never raises


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes(data: bytes) -> None:
    check(data)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_random_text(text: str) -> None:
    check((HEAD + f"def {ENTRY}(x):\n    {text}\n").encode("utf-8", "surrogatepass"))


def mutate(text: str, rng: random.Random) -> str:
    """Swap, drop, double or exchange lines and words."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 6)):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(5):
            case 0:
                lines[i], lines[j] = lines[j], lines[i]
            case 1:
                del lines[i]
            case 2:
                lines.insert(i, lines[j])
            case 3:
                words = lines[i].split(" ")
                rng.shuffle(words)
                lines[i] = " ".join(words)
            case 4:
                lines[i] = lines[i].replace("x", rng.choice(["_k", "torch", "tl", "y", "w", "(x, w)", "lambda: x"]))
        if not lines:
            return ""
    return "\n".join(lines)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(REDTEAM + CHEATS + HONEST), st.integers(0, 2**32))
def test_mutated_files(path: Path, seed: int) -> None:
    check(mutate(path.read_text(), random.Random(seed)).encode())


def test_every_file_with_another_entry() -> None:
    for path in REDTEAM + CHEATS + HONEST:
        policy.check(path.read_bytes(), filename=path.name, entry="_launch")


def test_a_check_is_quick() -> None:
    seconds = []
    for path in HONEST:
        start = time.perf_counter()
        check(path.read_bytes())
        seconds.append(time.perf_counter() - start)
    assert sorted(seconds)[len(seconds) // 2] < 0.05


# --- files made to tire the policy out

ENTRY_TAIL = f"\n\ndef {ENTRY}(x):\n    _k[(1,)](x, 1)\n    return "


@pytest.mark.parametrize("order", [1, -1])
def test_values_cannot_hide_behind_a_long_chain_of_calls(order: int) -> None:
    links = [f"def f{i}(x):\n    return f{i + 1}(x)\n" for i in range(200)] + ["def f200(x):\n    return x * 2\n"]
    data = (HEAD + "\n".join(links[::order]) + ENTRY_TAIL + "f0(x)\n").encode()
    assert not check(data).accepted


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"    a = [a, a, x, {i}]\n" for i in range(4_000)),
        "".join(f"    y = x.shape[0] * {i} + x.stride(0)\n" for i in range(20_000)),
        "".join(f"    u{i}_\n" for i in range(10_000)),
        "    x = " + "x." * 100 + "shape\n",
        "".join("    x = x.name\n" for _ in range(2_000)),
        "    f = lambda: f\n    f()\n",
        "    g = list\n    g = g(g)\n    g.append(g)\n",
    ],
    ids=["containers", "nodes", "names", "attributes", "growing", "lambda", "self"],
)
def test_a_check_ends(body: str) -> None:
    start = time.perf_counter()
    check((HEAD + "def f(x):\n    a = []\n" + body + ENTRY_TAIL + "x\n").encode())
    assert time.perf_counter() - start < 20


def test_a_name_bound_ten_thousand_times() -> None:
    start = time.perf_counter()
    assert not check((HEAD + "a = 1\n" * 10_000 + ENTRY_TAIL + "x\n").encode()).accepted
    assert time.perf_counter() - start < 20
