"""The records of a measurement: what the judge is asked to time, and what it saw.

Raw enough that every figure of a decision can be computed from it again: each contender's block medians, round by
round. Owns no arithmetic beyond naming; `weigh` makes of it what is decided by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from orchestrator.records import Compiled, Limits, Parameter, Record, SandboxPiece, Status

CANDIDATE, CHAMPION, BEST = "candidate", "champion", "the best kernel so far"
PICKED = "# of several configurations it picked"  # begins a line behind the code that torch.compile generated
REFERENCE, COMPILED, AUTOTUNED = "eager reference", "torch.compile", "torch.compile, max-autotune"


@dataclass(frozen=True)
class Baseline(Record):
    """One more thing to compare with: an expression over the entry's arguments, and the module that it needs."""

    name: str
    call: str
    module: str = ""


@dataclass(frozen=True)
class MeasureJob(Record):
    """A passed kernel to be timed: a folder with the pristine test files, the kernel, and the champion if there is one.

    `bytes` and `flops` are expressions in the dims and itemsize.
    """

    id: str
    nonce: str
    folder: str
    kernel: str  # file name
    function: str
    reference: str  # function in ref.py
    parameters: dict[str, Parameter]
    dims: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    bytes: str
    flops: str
    flops_at_least: bool = True  # else a kernel may do with fewer
    baselines: tuple[Baseline, ...] = ()
    curve: tuple[tuple[int, ...], ...] = ()  # shapes that are shown and do not decide
    curve_dtype: str = ""
    champion: str = ""  # file in the folder; "" where there is none
    best: str = ""  # the run's best kernel so far, a file in the folder; "" where the candidate is the first
    without: tuple[str, ...] = ()  # baselines left out, by name; the record says so
    rounds: int = 24
    sittings: int = 1
    total_s: float = 1500
    require_idle: bool = False
    keep_compiled: bool = False  # what torch.compile made of the baselines, for the next measurement
    seed: int | None = None  # None: a fresh one
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Launch(Record):
    """Options with which a kernel's launches are made; None leaves one as the file has it."""

    num_warps: int | None = None
    num_stages: int | None = None

    @property
    def options(self) -> dict[str, int]:
        """Those that are not left as they are."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.options.items()) or "as written"


AS_WRITTEN = Launch()


@dataclass(frozen=True)
class SweepJob(Record):
    """A passed kernel whose launches are to be timed in several ways. Of `kernel` the curve and rivals do not count."""

    kernel: MeasureJob
    launches: tuple[Launch, ...]  # beside AS_WRITTEN
    total_s: float


@dataclass(frozen=True)
class LaunchTimings(Record):
    """One way to launch, at each shape that was timed."""

    launch: Launch
    latencies_us: tuple[float, ...]  # in the order of Swept.shapes; none where it failed or was given up
    failed: str = ""  # why it cannot be launched so
    compiled: tuple[Compiled, ...] = ()  # by the candidate's own process
    slower: float = 0.0  # given up after some shapes, over which it took so many times as long as the file as written

    @property
    def followed(self) -> bool:
        """Whether it was timed at every shape."""
        return not (self.failed or self.slower)


@dataclass(frozen=True)
class Fastest(Record):
    """At one shape the way that took least, though it may have been given up at a later one."""

    shape: str
    launch: Launch
    latency_us: float
    written_us: float  # the file as it is


@dataclass(frozen=True)
class Swept(Record):
    """What other launch parameters would do to a kernel, by the account of its own process: what wins is measured.

    The first of `ways` is AS_WRITTEN.
    """

    nonce: str
    shapes: tuple[str, ...] = ()
    ways: tuple[LaunchTimings, ...] = ()
    fastest: tuple[Fastest, ...] = ()  # in the order of shapes
    expected_shapes: int = 0  # fewer were timed where the time ran out
    fault: str = ""  # why there is nothing to go by
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.fault and not (self.ways and self.ways[0].launch == AS_WRITTEN and self.shapes):
            raise ValueError("a sweep without the kernel as it is written tells nothing")
        if any(len(way.latencies_us) != (len(self.shapes) if way.followed else 0) for way in self.ways):
            raise ValueError("every way that was followed needs a time at each shape")


@dataclass(frozen=True)
class GpuState(Record):
    """The GPU as the driver shows it. None where the driver does not say."""

    name: str
    driver: str
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    utilization: int | None = None  # percent of the last moments in which a kernel ran
    others: tuple[str, ...] = ()  # processes that are not ours, in words


@dataclass(frozen=True)
class Timing(Record):
    """One contender at one shape and dtype."""

    name: str
    latencies_us: tuple[float, ...]  # the median of each block, one a round
    slope_us: float  # a replay by the judge's clock, with all that is done before it
    call_us: float | None = None  # a plain call as its caller sees it, launch included
    graph: bool = True  # replays of a captured graph; otherwise plain calls between events
    detail: str = ""  # why no graph, and whatever else a reader should know

    def __post_init__(self) -> None:
        if not self.latencies_us or not all(0 < us < math.inf for us in self.latencies_us):
            raise ValueError(f"{self.name}: times must be finite and above 0, got {self.latencies_us[:5]}")


@dataclass(frozen=True)
class ShapeTimings(Record):
    """All contenders at one shape and dtype, timed in the same rounds."""

    dims: dict[str, int]
    dtype: str
    bytes: int
    flops: int
    ideal_us: float  # what the card takes at least: copying as many bytes, or multiplying as much
    candidate: Timing
    baselines: tuple[Timing, ...]
    twin: tuple[float, ...] = ()  # the same baseline in another process: the noise
    twin_of: str = ""
    curve: bool = False  # shown, not decided by
    absent: dict[str, str] = field(default_factory=dict)  # baselines that could not be timed here, and why
    sittings: int = 1  # how many processes of each were timed, one after the other; each had as many of the rounds
    moving_us: float | None = None  # copying alone, where a kernel may do with fewer operations than `flops`

    @property
    def least_us(self) -> float:
        """What no kernel can beat."""
        return self.ideal_us if self.moving_us is None else self.moving_us

    @property
    def name(self) -> str:
        """The shape and dtype, "4096x1024 bfloat16"."""
        return f"{'x'.join(map(str, self.dims.values()))} {self.dtype}"

    def __post_init__(self) -> None:
        rounds = {len(times) for times in (self.candidate.latencies_us, *(b.latencies_us for b in self.baselines))}
        if not self.baselines or len(rounds) != 1:
            raise ValueError(f"{self.name}: every contender needs a time in every round, and there must be a baseline")
        if self.sittings < 1 or rounds.pop() % self.sittings:
            raise ValueError(f"{self.name}: its rounds cannot be those of {self.sittings} sittings, of as many each")


@dataclass(frozen=True)
class Measured(Record):
    """What measuring a passed kernel came to. status is PASSED, or what the kernel was convicted of while timed."""

    status: Status
    message: str
    nonce: str
    detail: str = ""
    shapes: tuple[ShapeTimings, ...] = ()
    expected_shapes: int = 0
    launch_us: float = 0.0  # what any launch takes at least, by the same clock
    copy_gbps: float = 0.0  # the best over all sizes
    matmul_tflops: dict[str, float] = field(default_factory=dict)  # by dtype, where the op is bound by it
    before: GpuState | None = None
    after: GpuState | None = None
    warnings: tuple[str, ...] = ()
    compiled: tuple[Compiled, ...] = ()  # what became of the kernel, by the account of its own process
    generated: dict[str, str] = field(default_factory=dict)  # torch.compile's code, by file name
    versions: dict[str, str] = field(default_factory=dict)
    sandbox: tuple[SandboxPiece, ...] = ()  # of the candidate's process
    seed: int = 0
    rounds: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.status is Status.PASSED and (not self.shapes or len(self.shapes) != self.expected_shapes):
            raise ValueError(f"a measurement needs all {self.expected_shapes} shapes, got {len(self.shapes)}")
