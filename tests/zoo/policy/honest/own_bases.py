# honest: classes that derive from classes of the file, with super, and errors and records that do
import torch
import triton
import triton.language as tl
import dataclasses


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


class Base:
    warps = 4

    def __init__(self, columns):
        self.columns = columns

    @property
    def block(self):
        return triton.next_power_of_2(self.columns)

    def launch(self, x, w, eps):
        return _launch(x, w, eps)


class Rows(Base):
    def __init__(self, columns, rows):
        super().__init__(columns)
        self.rows = rows

    def launch(self, x, w, eps):
        assert self.rows * self.columns * self.warps * self.block >= 0
        return super().launch(x, w, eps)


class KernelError(RuntimeError):
    pass


class RowError(KernelError):
    pass


@dataclasses.dataclass
class Tile:
    rows: int


@dataclasses.dataclass
class WideTile(Tile):
    columns: int = 2


def rmsnorm_triton(x, w, eps=1e-6):
    tile = WideTile(x.shape[0], columns=x.shape[1])
    if tile.rows * tile.columns < 0:
        raise RowError("no rows")
    return Rows(tile.columns, tile.rows).launch(x, w, eps)
