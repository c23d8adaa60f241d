"""Measurements as the judge would send them, for tests of what is made of them. The figures are invented here."""

from __future__ import annotations

from orchestrator.measured import BEST, COMPILED, REFERENCE, GpuState, Measured, ShapeTimings, Timing
from orchestrator.records import Status

ROUNDS = 6
IDLE = GpuState("NVIDIA H200", "580.1", sm_mhz=345, memory_mhz=3201, power_w=76.4, temperature_c=31, utilization=0)
BUSY = GpuState("NVIDIA H200", "580.1", sm_mhz=1980, memory_mhz=3201, power_w=402.0, temperature_c=48, utilization=97)


def timing(name: str, us: float, **fields: object) -> Timing:
    """Block medians around `us`, the same pattern for everyone."""
    latencies = tuple(us * (1 + 0.001 * (number - (ROUNDS - 1) / 2)) for number in range(ROUNDS))
    return Timing(name, latencies, slope_us=us + 60, call_us=us + 20, **fields)  # type: ignore[arg-type]


def shape(
    us: float,
    *,
    compiled: float = 50.0,
    dims: tuple[int, int] = (4096, 4096),
    ideal_us: float = 10.0,
    twin: float = 1.0,
    best: float | None = None,
) -> ShapeTimings:
    """One shape: the kernel, torch.compile and its twin, the reference four times as slow; perhaps an earlier best."""
    earlier = () if best is None else (timing(BEST, best),)
    return ShapeTimings(
        dims=dict(zip(("M", "N"), dims, strict=True)),
        dtype="float16",
        bytes=4 * dims[0] * dims[1],
        flops=4 * dims[0] * dims[1],
        ideal_us=ideal_us,
        candidate=timing("candidate", us),
        baselines=(timing(REFERENCE, 4 * compiled), timing(COMPILED, compiled), *earlier),
        twin=timing("twin", compiled * twin).latencies_us,
        twin_of=COMPILED,
        absent={"liger": "ModuleNotFoundError: No module named 'liger_kernel'"},
    )


def measured(*shapes: ShapeTimings, **fields: object) -> Measured:
    """A whole measurement."""
    return Measured(
        **{
            "status": Status.PASSED,
            "message": "timed",
            "nonce": "n",
            "shapes": shapes,
            "expected_shapes": len(shapes),
            "launch_us": 2.0,
            "copy_gbps": 4100.0,
            "before": IDLE,
            "after": BUSY,
            "rounds": ROUNDS,
            "versions": {"torch": "2.11.0"},
            **fields,
        }  # type: ignore[arg-type]
    )
