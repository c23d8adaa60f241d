"""Launch parameters: what is tried, what wins, and a source that says them plainly is edited to say others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import decision, launching
from orchestrator.judge.timing.launch_sweep import _Way, fastest, give_up_the_slower
from orchestrator.launching import Stays
from orchestrator.measured import AS_WRITTEN, Fastest, Launch, LaunchTimings, Swept
from orchestrator.records import Compiled, from_json, to_json
from tests.conftest import ZOO, zoo_kernel

EIGHT = Launch(num_warps=8)
KERNEL = """import triton
import triton.language as tl


{decorator}@triton.jit
def k(X, n, BLOCK: tl.constexpr):
    {body}


def f(x):
    {launch}
    return x
"""


def kernel(launch: str, decorator: str = "", body: str = "tl.store(X + tl.arange(0, BLOCK), 0.0)") -> bytes:
    return KERNEL.format(launch=launch, decorator=decorator, body=body).encode()


@pytest.mark.parametrize(
    ("launch", "becomes"),
    [
        ("k[(1,)](x, 3, BLOCK=64, num_warps=4)", "k[(1,)](x, 3, BLOCK=64, num_warps=8)"),
        ("k[(1,)](x, 3, BLOCK=64)", "k[(1,)](x, 3, BLOCK=64, num_warps=8)"),
        ("k[(1,)](x, 3, BLOCK=64,)", "k[(1,)](x, 3, BLOCK=64,num_warps=8)"),
        ("k[(1,)](x, (3), 64)", "k[(1,)](x, (3), 64, num_warps=8)"),
        ("k[(1,)](x, 3, (64))", "k[(1,)](x, 3, (64), num_warps=8)"),
        ("k[(1,)](x, 3, 64  # a, b\n    )", "k[(1,)](x, 3, 64  # a, b\n    , num_warps=8)"),
        ("k[(1,)](num_warps=1, X=x, n=3, BLOCK=64)", "k[(1,)](num_warps=8, X=x, n=3, BLOCK=64)"),
        ('u = "ü ü"; k[(1,)](x, 3, 64, num_warps=2)', 'u = "ü ü"; k[(1,)](x, 3, 64, num_warps=8)'),
        (
            "k[(1,)](x, 3, 64, num_warps=2)\n    k[(2,)](x, 4, 64)",
            "k[(1,)](x, 3, 64, num_warps=8)\n    k[(2,)](x, 4, 64, num_warps=8)",
        ),
    ],
)
def test_the_winner_is_written_into_every_launch(launch: str, becomes: str) -> None:
    assert launching.rewritten(kernel(launch), "k.py", EIGHT).decode() == kernel(becomes).decode()


def test_other_line_ends_are_kept() -> None:
    before = kernel("k[(1,)](x, 3, 64, num_warps=4)").replace(b"\n", b"\r\n")
    assert launching.rewritten(before, "k.py", EIGHT) == before.replace(b"num_warps=4", b"num_warps=8")


def test_both_parameters() -> None:
    found = launching.rewritten(kernel("k[(1,)](x, 3, 64, num_stages=3)"), "k.py", Launch(8, 2)).decode()
    assert "k[(1,)](x, 3, 64, num_stages=2, num_warps=8)" in found


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ("w = 4; k[(1,)](x, 3, 64, num_warps=w)", "num_warps is no literal in the launch in line 11"),
        ("k[(1,)](x, 3, 64, num_warps=4 if x else 8)", "no literal"),
        ("k[(1,)](x, 3, 64, **{'num_warps': 4})", "a dictionary of options"),
        ("run = k[(1,)]; run(x, 3, 64)", "no launch names its kernel"),
    ],
)
def test_what_is_not_said_plainly_stays_and_it_is_said_why(launch: str, why: str) -> None:
    with pytest.raises(Stays, match=why):
        launching.rewritten(kernel(launch), "k.py", EIGHT)


def test_an_autotuned_kernel_is_left_alone() -> None:
    tuned = kernel("k[(1,)](x, 3)", "@triton.autotune(configs=[triton.Config({'BLOCK': 64})], key=['n'])\n")
    with pytest.raises(Stays, match="autotuned"):
        launching.ways(tuned, "k.py")


def test_stages_are_tried_where_there_is_a_loop() -> None:
    plain = launching.ways(kernel("k[(1,)](x, 3, 64)"), "k.py")
    assert [one.num_warps for one in plain] == [1, 2, 4, 8, 16, 32] and {one.num_stages for one in plain} == {None}
    looped = launching.ways(kernel("k[(1,)](x, 3, 64)", body="for i in range(n): tl.store(X + i, 0.0)"), "k.py")
    assert len(looped) == 30 and Launch(8, 2) in looped and Launch(8) in looped


def swept(**microseconds: float | str) -> Swept:
    """`w8s2=20.0` is num_warps=8 with num_stages=2, over 40 us as written, at two shapes; text is why it fails."""
    ways = [LaunchTimings(AS_WRITTEN, (40.0, 10.0))]
    for name, us in microseconds.items():
        warps, _, stages = name.removeprefix("w").partition("s")
        launch = Launch(int(warps), int(stages) if stages else None)
        failed = isinstance(us, str)
        compiled = (Compiled("k", "sm_90", int(warps), 3, registers=40, spilled_bytes=0, occupancy=0.5),)
        times = () if isinstance(us, str) else (us, us / 4)
        ways.append(LaunchTimings(launch, times, str(us) if failed else "", () if failed else compiled))
    return Swept("n", ("4096x4096 float16", "1x4096 float16"), tuple(ways), expected_shapes=3)


@pytest.mark.parametrize(
    ("found", "winner"),
    [
        (swept(w8=30.0, w16=35.0), Launch(8)),
        (swept(w8=39.9, w16=39.5), None),
        (swept(w8=41.0), None),
        (swept(w8s2=30.0, w8=30.3), Launch(8)),  # cannot be told apart: what changes least
        (swept(w8s2=30.0, w8=32.0), Launch(8, 2)),
        (swept(w8="out of resource: shared memory"), None),
        (swept(w8=39.3, w8s2=39.0), Launch(8, 2)),  # only one of them beats the file as written beyond the margin
    ],
)
def test_what_wins(found: Swept, winner: Launch | None) -> None:
    assert launching.chosen(found, 0.02) == winner


def test_the_table_names_the_ways_their_times_and_what_failed() -> None:
    text = decision.sweep(swept(w8=30.0, w16s2=20.0, w32="out of resource: threads"))
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [line.split("|")[1:3] for line in lines] == [
        [" num_warps=16, num_stages=2 ", " 0.500 "],
        [" num_warps=8 ", " 0.750 "],
        [" as written ", " 1.000 "],
    ]
    assert "| num_warps=8 | 0.750 | 40 | 0 | 50 % |" in text and "Timed at 2 of 3 shapes" in text
    assert "3 ways were timed at each; 1 do not work (num_warps=32: out of resource: threads)" in text
    assert decision.sweep(None) == "" == decision.sweep(Swept("n", fault="killed"))


def test_shapes_at_which_another_way_is_clearly_faster_are_named() -> None:
    best = [
        ("4096x4096 float16", Launch(4), 39.5, 40.0),
        ("1x1 float16", Launch(8), 9.0, 10.0),
        ("7x7 float16", Launch(1, 2), 5.0, 10.0),
    ]
    found = replace(swept(w8=30.0), fastest=tuple(Fastest(*one) for one in best))
    lines = [line for line in decision.sweep(found).splitlines() if "float16" in line]
    assert lines == [
        "| 7x7 float16 | 10.00 µs | 5.00 µs | num_warps=1, num_stages=2 |",
        "| 1x1 float16 | 10.00 µs | 9.00 µs | num_warps=8 |",
    ]
    assert "At single shapes" not in decision.sweep(swept(w8=30.0))
    assert fastest("a", {AS_WRITTEN: 10.0, Launch(4): 9.0, Launch(8): 11.0}) == Fastest("a", Launch(4), 9.0, 10.0)


def test_the_slower_half_is_given_up_but_never_the_file_as_it_is_nor_the_fastest_few() -> None:
    ways = [_Way(AS_WRITTEN, [10.0, 20.0]), _Way(Launch(64), failed="out of resource: threads")]
    ways += [_Way(Launch(2**number), [10.0 + number - 2, 20.0 + number - 2]) for number in range(10)]
    give_up_the_slower(ways)
    assert [way.launch.num_warps for way in ways if way.slower] == [2**number for number in range(5, 10)]
    assert ways[-1].slower == pytest.approx((17 / 10 * 27 / 20) ** 0.5)
    give_up_the_slower(ways)
    assert [way.launch.num_warps for way in ways[1:] if way.followed] == [1, 2, 4, 8], "the fastest four stay"
    found = Swept("n", ("a", "b"), tuple(way.timings() for way in ways), expected_shapes=2)
    assert [row.way.launch.num_warps for row in launching.rows(found)] == [1, 2, None, 4, 8]
    assert "5 ways were timed at each; 6 were given up after a few, where they took 1.15 to 1.51 times" in (
        decision.sweep(found)
    )


def test_a_sweep_comes_back_from_disk_as_it_was() -> None:
    found = swept(w8=30.0, w32="no")
    assert from_json(Swept, to_json(found)) == found


def test_a_sweep_without_the_file_as_it_is_tells_nothing() -> None:
    with pytest.raises(ValueError, match="as it is written"):
        Swept("n", ("1x1 float16",), (LaunchTimings(EIGHT, (1.0,)),))
    with pytest.raises(ValueError, match="at each shape"):
        Swept("n", ("1x1 float16",), (LaunchTimings(AS_WRITTEN, ()),))


@pytest.mark.parametrize(
    "path", sorted((ZOO / "ops").glob("*.py")) + [ZOO / "kernels" / "good.py"], ids=lambda p: p.stem
)
def test_honest_kernels_are_rewritten_or_it_is_said_why(path: object) -> None:
    code = path.read_bytes()  # type: ignore[attr-defined]
    try:
        ways = launching.ways(code, "k.py")
        found = launching.rewritten(code, "k.py", ways[0])
    except Stays as reason:
        assert str(reason)
    else:
        assert b"num_warps=1" in found and found != code


def test_the_plain_kernel_of_the_zoo_is_rewritten() -> None:
    code = zoo_kernel("good")
    found = launching.rewritten(code, "k.py", EIGHT)
    assert found.count(b"num_warps=8") == code.count(b"[(") >= 1
