# honest: errors and warnings of the file's own, with fields and a text, and one that is caught and said
import torch
import triton
import triton.language as tl
import warnings


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


class KernelError(RuntimeError):
    """Raised for arguments that the kernel cannot take."""


class RowError(ValueError):
    pass


class SlowWarning(UserWarning):
    hint = "make it contiguous"


class ShapeError(ValueError):
    def __init__(self, shape, wanted):
        super().__init__(f"bad shape {tuple(shape)}")
        self.shape = shape
        self.wanted = wanted

    def __str__(self):
        return f"{self.shape} instead of {self.wanted}"


def _processors(device):
    try:
        return torch.cuda.get_device_properties(device).multi_processor_count
    except (RuntimeError, AssertionError) as error:
        raise KernelError(f"no device: {error}") from error


def rmsnorm_triton(x, w, eps=1e-6):
    if x.dim() != 2:
        raise RowError
    M, N = x.shape
    if w.numel() != N:
        raise ShapeError(w.shape, N)
    if x.device != w.device:
        raise KernelError("x is on %s, w is on %s" % (x.device, w.device))
    if not x.is_contiguous():
        warnings.warn(SlowWarning.hint, SlowWarning)
    if x.is_cuda and _processors(x.device) < 1:
        raise KernelError()
    return _launch(x, w, eps)
