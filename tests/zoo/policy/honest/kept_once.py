# honest: containers of the module that grow once for a key
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < N), mask=cols < N)


def _launch(x):
    y = torch.empty_like(x)
    _k[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return y


_KEYS, _WARPS, _FIRST = [], {}, []


def _known(n):
    if n in _KEYS:
        return True
    _KEYS.append(n)
    return False


def _warps(n):
    if n not in _WARPS:
        _WARPS[n] = 8 if n > 4096 else 4
    if not _FIRST:
        _FIRST.append(n)
    found = [_WARPS[n]]
    found.append(_FIRST[0])
    return found[0] + sum(1 for _ in found) * 0


def rmsnorm_triton(x, w, eps=1e-6):
    _known(x.shape[1])
    y = torch.empty_like(x)
    first = next(size for size in x.shape if size > 0)
    _k[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()), num_warps=_warps(first))
    return y
