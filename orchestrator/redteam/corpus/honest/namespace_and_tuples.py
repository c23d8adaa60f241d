# honest: a namespace and a table of collections.namedtuple, a while loop over the row
import torch
import triton
import triton.language as tl
from types import SimpleNamespace
from collections import namedtuple, defaultdict
from itertools import product

Tile = namedtuple("Tile", "block warps")
TILES = [Tile(b, nw) for b, nw in product((64, 256, 1024, 4096), (4,))]
CFG = SimpleNamespace(stages=1, max_block=4096)


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    i = 0
    while i < N:
        x = tl.load(x_ptr + row * N + i + c, mask=(i + c) < N, other=0.0).to(tl.float32)
        acc += x * x
        i += BLOCK
    rstd = tl.rsqrt(tl.sum(acc, axis=0) / N + eps)
    i = 0
    while i < N:
        m = (i + c) < N
        x = tl.load(x_ptr + row * N + i + c, mask=m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + i + c, mask=m, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + i + c, x * rstd * w, mask=m)
        i += BLOCK


def _tile(n):
    fitting = sorted((t for t in TILES if t.block >= n), key=lambda t: t.block)
    return fitting[0] if fitting else TILES[-1]


def rmsnorm_triton(x, w, eps=1e-6):
    match x.shape:
        case (rows, cols):
            pass
        case _:
            raise ValueError(f"{x.shape=}")
    if (tile := _tile(cols)).block > CFG.max_block:
        raise ValueError("no tile")
    y = torch.empty_like(x).contiguous()
    kwargs = dict(BLOCK=tile.block, num_warps=tile.warps, num_stages=CFG.stages)
    _rms[(rows,)](x, w, y, cols, eps, **kwargs)
    return y
