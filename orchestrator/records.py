"""What crosses module lines: frozen records, and the rules that make a false one impossible to build.

Owns the vocabulary (Status, Decision) and the shape of a run's record on disk. Owns no behaviour beyond checking its
own consistency and turning itself into JSON. Imports nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
Parameter: TypeAlias = bool | int | float | str  # what an entry takes beside tensors


class Record:
    """Base of every record: JSON with unknown fields refused, and NaN and infinities kept as strings."""

    __pydantic_config__ = {"ser_json_inf_nan": "strings", "extra": "forbid"}  # pydantic's own name for it


class Status(StrEnum):
    """How an attempt ended. Everything but INFRASTRUCTURE is about the candidate."""

    PASSED = "PASSED"
    NO_CODE = "NO_CODE"  # the reply holds no code block
    TAMPERED = "TAMPERED"  # the tree differs from the baseline in more than the kernel file
    FORBIDDEN = "FORBIDDEN"  # the source says something that no honest kernel needs
    FALLBACK = "FALLBACK"  # the host computes with torch instead of launching the kernel
    COMPILE_ERROR = "COMPILE_ERROR"  # the file does not parse or import, or Triton refuses the kernel
    RUNTIME_ERROR = "RUNTIME_ERROR"  # the call raised
    CRASHED = "CRASHED"  # the process ended by itself: a signal, os._exit, too much memory, too many processes
    TIMEOUT = "TIMEOUT"
    WRONG_SHAPE = "WRONG_SHAPE"  # also: not a tensor, the wrong number of outputs, the wrong device or layout
    WRONG_DTYPE = "WRONG_DTYPE"
    WRONG_VALUES = "WRONG_VALUES"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    INPUT_MUTATED = "INPUT_MUTATED"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    LOW_PRECISION = "LOW_PRECISION"
    INFRASTRUCTURE = "INFRASTRUCTURE"  # ours; never counted against the candidate


class Decision(StrEnum):
    """What becomes of a run."""

    MERGE = "MERGE"
    REWORK = "REWORK"
    ABANDON = "ABANDON"
    ESCALATE = "ESCALATE"
    REJECT = "REJECT"
    UNMEASURED = "UNMEASURED"


@dataclass(frozen=True)
class Finding(Record):
    """One thing a rule found in a candidate's tree or source, written for whoever must repair it."""

    status: Status
    where: str  # "rmsnorm_triton.py:12", or a path in the tree
    text: str  # what stands there, capped
    message: str  # what is wrong with it
    advice: str  # what to do instead


class Severity(StrEnum):
    """How grave a finding of the audit is. HIGH is kept for what is established; what depends on shapes or values is
    MEDIUM at most."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Part(StrEnum):
    """The part of an audit that a finding belongs to."""

    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    MEMORY = "memory access"
    NUMERICS = "numerical stability"
    PRACTICE = "good practice"


@dataclass(frozen=True)
class AuditFinding(Record):
    """A known fault that the audit finds in a kernel, for a person, a program or a code host."""

    rule: str
    severity: Severity
    part: Part
    file: str
    line: int
    column: int  # from 1
    text: str  # the line, capped
    message: str  # what is wrong here, and under which condition
    why: str
    repair: str

    @property
    def priority(self) -> tuple[int, int, str, int, int, str]:
        """The gravest first, then by part, file and line."""
        gravity, part = list(Severity).index(self.severity), list(Part).index(self.part)
        return gravity, part, self.file, self.line, self.column, self.rule


@dataclass(frozen=True)
class WrongElement(Record):
    """One element that missed its tolerance."""

    index: tuple[int, ...]
    got: float
    want: float


@dataclass(frozen=True)
class CaseResult(Record):
    """One case of the sweep: one shape, dtype and scale, called once and compared in the judge."""

    name: str
    dims: dict[str, int]
    dtype: str
    scale: float
    holdout: bool
    status: Status
    parameters: dict[str, Parameter] = field(default_factory=dict)
    max_abs: float | None = None
    max_rel: float | None = None
    wrong: int = 0  # elements outside the tolerance
    elements: int = 0
    tolerance_ratio: float | None = None  # worst |got - want| / (atol + rtol |want|); <= 1 passes
    precision: float | None = None  # RMS error against float64, in units of the reference's own
    first_wrong: tuple[WrongElement, ...] = ()
    wrong_in: str = ""  # where the wrong elements lie, in words: "only the last column"
    detail: str = ""  # for anything but PASSED: what happened, for whoever must repair it
    seconds: float = 0.0
    values: str = "normal"  # what kind of values
    seed: int = 0  # of its values: the same seed on the same kind of device makes them again

    @property
    def passed(self) -> bool:
        """Whether this case passed."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class SandboxPiece(Record):
    """One piece of the confinement, and whether this machine gave it."""

    name: str
    held: bool
    detail: str = ""  # when not held: what is missing, and what that lets through


@dataclass(frozen=True)
class Compiled(Record):
    """What one specialization of a kernel became for one target. None: nothing stated it."""

    kernel: str
    target: str  # "sm_90", "gfx942"
    warps: int
    stages: int
    registers: int | None = None  # of a thread
    spilled_bytes: int | None = None  # of a thread, as the assembler or the driver counts them
    shared_bytes: int | None = None  # of a program
    load_bits: dict[int, int] | None = None  # width of one thread's access to global memory -> instructions
    store_bits: dict[int, int] | None = None
    bulk_copies: int | None = None  # by the copy engine, for a whole tile
    tensor_cores: bool | None = None  # whether it multiplies on them
    occupancy: float | None = None  # estimated share of a multiprocessor's warps, 0 to 1
    stack_bytes: int | None = None  # of a thread: what is indexed by no constant, and what is spilled
    uncoalesced: tuple[int, ...] | None = None  # lines whose access steps through memory across a warp's lanes
    line: int = 0  # of the kernel's definition; 0: not said
    types: dict[str, str] = field(default_factory=dict)  # of its arguments, where it was compiled ahead
    constants: dict[str, Parameter] = field(default_factory=dict)  # its constexprs by name, of plain ones
    tf32: bool | None = None  # whether it multiplies float32 with the ten bits of TF32


@dataclass(frozen=True)
class Report(Record):
    """The verdict on one attempt. Only the judge builds one that says PASSED."""

    status: Status
    message: str  # one line
    detail: str = ""  # traceback tail or output, quoted and capped
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()  # grey things seen and allowed, said so that a person can disagree
    cases: tuple[CaseResult, ...] = ()
    expected_cases: int = 0
    diagnosis: tuple[str, ...] = ()  # the pattern across failing cases, in words
    device: str = ""  # "cpu, Triton's interpreter", "NVIDIA H200"
    interpreted: bool = False
    seed: int | None = None
    nonce: str = ""
    sandbox: tuple[SandboxPiece, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(
        default_factory=dict
    )  # start, import, cases (of them each check of a series), compile, total
    output: str = ""  # what the candidate printed, capped; never evidence
    compiled: tuple[Compiled, ...] = ()  # without a GPU: what was launched, compiled for real targets
    audit: tuple[AuditFinding, ...] = ()  # of a kernel that passed: what its source shows, the gravest first

    def __post_init__(self) -> None:
        if self.status is not Status.PASSED:
            return
        if not self.cases or len(self.cases) != self.expected_cases:
            raise ValueError(f"PASSED needs all {self.expected_cases} expected cases, got {len(self.cases)}")
        if not all(case.passed for case in self.cases):
            raise ValueError("PASSED with a case that did not pass")
        if not self.nonce:
            raise ValueError("PASSED without the job's nonce")
        if self.findings:
            raise ValueError("PASSED with a finding against the candidate")

    @property
    def passed(self) -> bool:
        """Whether the attempt passed."""
        return self.status is Status.PASSED

    @property
    def grave(self) -> tuple[AuditFinding, ...]:
        """Faults that the audit establishes in a kernel that passed."""
        return tuple(one for one in self.audit if one.severity is Severity.HIGH)

    @property
    def accepted(self) -> bool:
        """Whether it passed and the audit establishes nothing against it."""
        return self.passed and not self.grave

    @property
    def passed_cases(self) -> int:
        """How many cases passed."""
        return sum(case.passed for case in self.cases)

    @classmethod
    def rejected(cls, findings: tuple[Finding, ...], notes: tuple[str, ...] = ()) -> Report:
        """The report of an attempt that was stopped before it ran, by the guard or the policy.

        TAMPERED outranks FORBIDDEN, which outranks FALLBACK: the status names the worst of the findings.
        """
        order = [Status.TAMPERED, Status.FORBIDDEN, Status.FALLBACK, Status.COMPILE_ERROR]
        worst = min((finding.status for finding in findings), key=order.index)
        first = next(finding for finding in findings if finding.status is worst)
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        return cls(worst, f"{first.where}: {first.message}{more}", findings=findings, notes=notes)


@dataclass(frozen=True)
class Limits(Record):
    """What one candidate may take. Compiling happens within a call: one that meets new shapes gets both limits."""

    import_s: float = 60
    compile_s: float = 120
    call_s: float = 60
    total_s: float = 900
    memory_mb: int = 16384
    processes: int = 64
    scratch_mb: int = 2048
    arena_mb: int = 1024  # of each buffer that judge and candidate share


@dataclass(frozen=True)
class Job(Record):
    """One attempt for the judge: a folder with the pristine test files and the one kernel file."""

    id: str
    nonce: str
    folder: str  # absolute; of it, the candidate may read the kernel file and write in scratch/, nothing else
    op: str
    kernel: str  # file name
    function: str
    arguments: tuple[str, ...]  # the entry's tensors, in order
    parameters: dict[str, Parameter]  # its other parameters and their defaults
    quick: bool | None = None  # None: quick without a GPU, full with one
    seed: int | None = None  # None: a fresh one
    skip: tuple[str, ...] = ()  # checks switched off, by name; the report names them
    first_failure: bool = False  # stop the sweep at the first case that fails
    limits: Limits = field(default_factory=Limits)
    in_place: dict[str, int] = field(default_factory=dict)  # inputs that the op has overwritten: by which result
    repeatable: bool = False  # whether atomics, too, must give the same bits each time
    host_operations: tuple[str, ...] = ()  # of torch, that the op allows its host code, by the names of op.yaml


@dataclass(frozen=True)
class OpCheckJob(Record):
    """An op whose own checker is to be checked: a folder with its test files and, where it has one, its decoys.py."""

    folder: str  # absolute
    op: str
    module: str  # of the kernel file, which does not exist
    function: str
    reference: str  # name of the function in ref.py
    inputs: dict[str, tuple[str, ...]]  # shapes
    outputs: dict[str, tuple[str, ...]]
    output_dtypes: dict[str, str]  # a dtype, or the input that has it
    integers: tuple[str, ...]  # inputs that hold integers
    strided: tuple[str, ...]  # inputs that need not be contiguous
    in_place: dict[str, int]  # inputs that are overwritten: by which result
    dtypes: tuple[str, ...]
    parameters: dict[str, Parameter]
    values: tuple[str, ...]  # kinds of values that the test file can make
    equivalent: dict[str, str]  # decoys that the op's author declares equal to the reference, and why
    baselines: dict[str, str]  # calls that a kernel is measured against, of torch alone
    quick: bool | None = None  # None: quick without a GPU, full with one
    confined: bool = False  # its code is a draft that nobody has read


class Fate(StrEnum):
    """What became of a decoy."""

    REJECTED = "rejected"
    EQUIVALENT = "equivalent"  # on every case, and on further ones, it is the reference itself
    DECLARED = "declared equivalent"  # by the op's author, with a reason
    UNMADE = "not to be made"  # the op takes no inputs that are changed like this: there is no such fault
    PASSED = "let through"
    BROKEN = "broken"  # it raises, or what was declared of it is not so


@dataclass(frozen=True)
class DecoyResult(Record):
    """What became of one decoy, and by which case."""

    name: str
    about: str  # the fault that it stands for
    fate: Fate
    case: str = ""
    status: Status | None = None  # how that case rejected it
    detail: str = ""


@dataclass(frozen=True)
class OpCheck(Record):
    """Whether an op's checker rejects every decoy."""

    op: str
    device: str
    decoys: tuple[DecoyResult, ...]
    seconds: float

    @property
    def counted(self) -> tuple[DecoyResult, ...]:
        """The decoys that differ from the reference."""
        return tuple(one for one in self.decoys if one.fate not in (Fate.EQUIVALENT, Fate.DECLARED, Fate.UNMADE))

    @property
    def rejected(self) -> int:
        """How many of those were rejected."""
        return sum(one.fate is Fate.REJECTED for one in self.decoys)

    @property
    def passed(self) -> bool:
        """Whether every decoy that is not the reference itself is rejected, and there is one."""
        return 0 < self.rejected == len(self.counted)


@dataclass(frozen=True)
class Judging(Record):
    """Where verdicts are made: what a prompt and a record say of it."""

    device: str  # "NVIDIA H200", "CPU, Triton's interpreter"
    interpreted: bool
    versions: dict[str, str]  # python, torch, triton, driver
    sandbox: tuple[SandboxPiece, ...]


@dataclass(frozen=True)
class Turn(Record):
    """One message of a conversation. role is 'user' or 'assistant'."""

    role: str
    text: str


@dataclass(frozen=True)
class Prompt(Record):
    """What a model is asked: a fixed system text and the conversation so far, ending with a user's turn."""

    system: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Usage(Record):
    """What one proposal cost. Unknown stays None: an agent that cannot count does not say zero."""

    latency_s: float
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    requests: int = 1  # above 1 when the provider had to be asked again
    cost_usd: float | None = None


@dataclass(frozen=True)
class Reply(Record):
    """What a model answered, unedited."""

    text: str
    model: str
    usage: Usage
    truncated: bool = False  # the provider cut it off at its limit of tokens
    agent: str = ""  # who proposed it where that is not the run's agent: a person, the launch sweep
    in_tree: bool = False  # given by an agent that worked in the tree: the kept tree is the reply, the text its words


@dataclass(frozen=True)
class Attempt(Record):
    """One proposal and what became of it."""

    number: int
    stage: str
    round: int
    agent: str
    model: str
    prompt_sha256: str
    report: Report
    usage: Usage
    commit: str | None = None  # on the run's branch

    @property
    def status(self) -> Status:
        """How it ended."""
        return self.report.status


@dataclass(frozen=True)
class Measurement(Record):
    """How fast a passed kernel is against the best of its baselines, measured side by side in one session."""

    baseline: str
    speedup_low: float  # the interval's ends of the geometric mean over shapes; above 1 the kernel is faster
    speedup_high: float
    slowest_shape: str  # within the envelope: excluded shapes do not count
    slowest_speedup: float
    roofline_share: float  # of the ceiling measured in the same session, 0 to 1
    noise: float  # of a baseline against itself, as a fraction: the largest at one shape
    rungs_left: int
    noise_overall: float | None = None  # of its geometric mean over the shapes; None: not known, `noise` stands for it
    excluded_shapes: tuple[str, ...] = ()  # put outside the kernel's envelope, in words

    def __post_init__(self) -> None:
        if not 0 < self.speedup_low <= self.speedup_high:
            raise ValueError(f"no interval: {self.speedup_low} to {self.speedup_high}")
        if not 0 <= self.roofline_share <= 1:
            raise ValueError("a time that beats the roofline is a fault of the measurement or a cheat")

    @property
    def spread(self) -> float:
        """The noise of what is said over all shapes."""
        return self.noise if self.noise_overall is None else self.noise_overall


@dataclass(frozen=True)
class Verdict(Record):
    """The decision of a run and why, in one sentence."""

    decision: Decision
    reason: str


@dataclass(frozen=True)
class Cost(Record):
    """What was spent. Where something did not say its part, the sum is of the others, and `known` is not so."""

    calls: int = 0  # of a model, answered
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    tokens_known: bool = True
    usd_known: bool = True
    gpu_s: float = 0.0  # for which the judge held a GPU: verdicts, measurements, sweeps


@dataclass(frozen=True)
class Run(Record):
    """The record of one run of the loop on one op."""

    id: str
    op: str
    branch: str
    baseline: str  # commit
    started: str  # ISO 8601, UTC
    agent: str
    attempts: tuple[Attempt, ...] = ()
    best: int | None = None  # number of the best passed attempt
    measurement: Measurement | None = None
    verdict: Verdict | None = None
    remarks: tuple[str, ...] = ()
    cost: Cost = Cost()
    error: str = ""  # what ended the run before its decision: a failure, or that a person interrupted it
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.measurement is not None and self.best is None:
            raise ValueError("a measurement without a passed attempt")
        if self.best is not None and not self.attempts[self.best - 1].report.passed:
            raise ValueError("the best attempt did not pass")

    @property
    def exit_code(self) -> int:
        """0 accepted or, unmeasured, correct; 1 not accepted; 3 our machinery."""
        if self.error or self.verdict is None:
            return 3
        return 0 if self.verdict.decision in (Decision.MERGE, Decision.UNMEASURED) else 1


_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # not at import: `--help` does not need it

    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)  # making one takes milliseconds
    return _adapters[kind]


def to_json(record: Any, *, indent: int | None = 2) -> str:
    """A record as JSON. NaN and infinities are written as strings, which `from_json` reads back."""
    return _adapter(type(record)).dump_json(record, indent=indent).decode()


def from_json(kind: type[T], text: str | bytes) -> T:
    """The record that `to_json` wrote. Raises pydantic.ValidationError on anything else."""
    record: T = _adapter(kind).validate_json(text)
    return record
