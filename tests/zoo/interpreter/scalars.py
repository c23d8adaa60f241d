"""Scalar arguments, loop variables and grids as a GPU launch has them."""

import torch
import triton
import triton.language as tl


@triton.jit
def floats(Y, eps, zero, one):
    tl.store(Y, eps.to(tl.float32))
    tl.store(Y + 1, zero.to(tl.float32) + one.to(tl.float64).to(tl.float32))
    tl.store(Y + 2, eps * 2 + one)


def case_float_to():
    y = torch.empty(3)
    floats[(1,)](y, 1e-6, 0.0, 1.0)
    assert torch.allclose(y, torch.tensor([1e-6, 1.0, 1.000002])), y


@triton.jit
def integers(Y, n, zero, one, large, unsigned):
    tl.store(Y, n.to(tl.int64) * 2)
    tl.store(Y + 1, zero.to(tl.int64) + one.to(tl.int64))
    tl.store(Y + 2, large)
    tl.store(Y + 3, unsigned + n)


def case_ints_controls():
    y = torch.empty(4, dtype=torch.int64)
    integers[(1,)](y, 7, 0, 1, 2**40, 5)
    assert y.tolist() == [14, 1, 2**40, 12], y


def case_int_beyond_31_bits_controls():
    y = torch.empty(4, dtype=torch.int64)
    integers[(1,)](y, -7, 0, 1, 2**40, 3_000_000_000)
    assert y.tolist() == [-14, 1, 2**40, 3_000_000_000 - 7], y


@triton.jit
def typed(Y, n):
    tl.static_assert(n.dtype == tl.int64)
    tl.store(Y, n - 4_000_000_000)


def case_large_int_keeps_its_sign_controls():
    y = torch.empty(1, dtype=torch.int64)
    typed[(1,)](y, 3_000_000_000)
    assert y.item() == -1_000_000_000, y


@triton.jit
def annotated(Y, n: tl.int64, x: tl.float64):
    tl.static_assert(n.dtype == tl.int64)
    tl.static_assert(x.dtype == tl.float64)
    tl.store(Y, n * 2_000_000_000)


def case_annotated_types():
    y = torch.empty(1, dtype=torch.int64)
    annotated[(1,)](y, 3, 0.5)
    assert y.item() == 6_000_000_000, y


@triton.jit
def flags(Y, flag, n, BLOCK: tl.constexpr, DOUBLE: tl.constexpr):
    c = tl.arange(0, BLOCK)
    y = tl.zeros((BLOCK,), tl.float32)
    if flag:
        y += 1
    if n:
        y += n
    if DOUBLE:
        y *= 2
    for i in range(n):
        y += 1
    tl.store(Y + c, y)


def case_truth_and_constants_sometimes():
    y = torch.empty(4)
    flags[(1,)](y, 1, 3, BLOCK=4, DOUBLE=True)
    assert y.tolist() == [11.0] * 4, y


def case_bool_sometimes():
    y = torch.empty(4)
    flags[(1,)](y, True, 3, BLOCK=4, DOUBLE=True)
    assert y.tolist() == [11.0] * 4, y
    flags[(1,)](y, False, 0, BLOCK=4, DOUBLE=False)
    assert y.tolist() == [0.0] * 4, y
    raise_without_repair()


def raise_without_repair():
    """A bool argument is an error on 3.7 and an int32 before: the type tells."""
    y = torch.empty(1)
    bool_type[(1,)](y, True)


@triton.jit
def bool_type(Y, flag):
    tl.static_assert(flag.dtype == tl.int1)
    tl.store(Y, flag.to(tl.float32))


@triton.jit
def loops(Y, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int64)
    for i in range(tl.program_id(0), n, 2):
        total += i.to(tl.int64)
    for j in tl.range(0, n, num_stages=2):
        total += j.to(tl.int64)
    for k in tl.static_range(3):
        total += k
    tl.store(Y + tl.arange(0, BLOCK), total)


def case_loop_variables():
    y = torch.empty(4, dtype=torch.int64)
    loops[(1,)](y, 7, BLOCK=4)
    assert y.tolist() == [12 + 21 + 3] * 4, y


@triton.jit
def smallest(X, Y, limit, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(X + c)
    tl.store(Y + c, max(min(x, limit), -1.0))


def case_min_and_max_of_blocks():
    x, y = torch.linspace(-3, 3, 16), torch.empty(16)
    smallest[(1,)](x, y, 1.0, BLOCK=16)
    assert torch.equal(y, x.clamp(-1, 1)), y


@triton.jit
def logic(X, Y, n, m, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    inside = (c < n) and (c >= m)
    outside = not inside
    either = (c == n) or (c == m)
    tl.store(Y + c, inside.to(tl.int32) + 2 * outside.to(tl.int32) + 4 * either.to(tl.int32))


def case_and_or_not_of_blocks():
    y = torch.empty(16, dtype=torch.int32)
    logic[(1,)](y, y, 9, 3, BLOCK=16)
    c = torch.arange(16)
    inside = (c < 9) & (c >= 3)
    assert torch.equal(y, inside.int() + 2 * (~inside).int() + 4 * ((c == 9) | (c == 3)).int()), y


def case_grid_sees_numbers():
    seen = []

    def grid(meta):
        seen.append(meta["n"])
        return [1 if isinstance(meta["n"], int) else 0 / 0]

    y = torch.empty(4, dtype=torch.int64)
    loops[grid](y, 7, BLOCK=4)
    assert type(seen[0]) is int and y[0] == 36, (seen, y)


def case_grid_too_large():
    y = torch.empty(4, dtype=torch.int64)
    try:
        loops[(1, 1, 65536)](y, 1, BLOCK=4)
    except RuntimeError as error:
        assert "invalid argument" in str(error), error
    else:
        raise AssertionError("a GPU has 65535 programs at most along that axis")


@triton.jit
def long_name(Y, SIZE: triton.language.constexpr):
    tl.store(Y + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.float32))


def case_constexpr_by_its_long_name():
    y = torch.ones(8)
    long_name[(1,)](y, SIZE=8)
    assert not y.any(), y
    assert isinstance(long_name.arg_names, list)


@triton.jit
def twice(X, Y, Z, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(Y + c, tl.load(X + c) + 1)
    tl.store(Z + c, tl.load(X + c) + 1)


def case_one_tensor_under_two_names_controls():
    x = torch.zeros(8)
    y = torch.zeros(8)
    twice[(1,)](x, x, y, BLOCK=8)
    assert x.tolist() == [1.0] * 8 and y.tolist() == [2.0] * 8, (x, y)


class Buffer:
    """What a launch on a GPU takes for a tensor: an address and a type."""

    def __init__(self, tensor):
        self.tensor, self.dtype = tensor, tensor.dtype

    def data_ptr(self):
        return self.tensor.data_ptr()


def case_an_address_and_a_type():
    x, y, z = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    twice[(1,)](Buffer(x), Buffer(y), z, BLOCK=8)
    assert y.tolist() == z.tolist() == [1.0] * 8


def case_the_condition_of_a_loop_sometimes():
    """`while tl.condition(...)`, where the language has it, ends."""
    assert not hasattr(tl, "condition") or not tl.condition(0)
