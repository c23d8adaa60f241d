# honest: named tuples with _replace and _asdict, and typed dictionaries
import torch
import triton
import triton.language as tl
import collections
import typing


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y


class Tile(typing.NamedTuple):
    rows: int
    block: int = 1024


class Plan(typing.TypedDict, total=False):
    rows: int
    warps: int


Grid = collections.namedtuple("Grid", "x y")


def _plan(n: int) -> Plan:
    plan = Plan(rows=n, warps=4)
    other: Plan = {"rows": 1, "warps": 8}
    return other if plan["rows"] * 2 < 0 else plan


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    tile = Tile(M)._replace(block=triton.next_power_of_2(N))
    grid = Grid(1, 1)._replace(x=tile._asdict()["rows"])
    y = torch.empty_like(x)
    plan = _plan(M)
    assert grid._asdict()["y"] + plan["rows"] >= 1
    warps = plan.get("warps", 4) * 1
    _k[(grid.x,)](x, w, y, x.stride(0), N, eps, BLOCK=tile.block, num_warps=warps)
    return y
