# honest: occupancy by the registers of a kernel that warmup compiled, kept by its block, and the best configuration logged | notes: 1
import torch
import triton
import triton.language as tl
import logging

log = logging.getLogger("rms")


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


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 4096}, num_warps=8)], key=["n"])
@triton.jit
def _copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)


COMPILED = {}


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(N)
    programs = M
    if x.is_cuda:
        if block not in COMPILED:
            kernel = _k.warmup(x, w, y, x.stride(0), N, eps, BLOCK=block, num_warps=4, grid=(1,))
            kernel._init_handles()
            COMPILED[block] = (kernel, kernel.n_regs)
        kernel, registers = COMPILED[block]
        occupancy = 65536 // (max(registers, 1) * 32 * 4)
        if kernel.metadata.shared > 0:
            occupancy = min(occupancy, 232448 // kernel.metadata.shared)
        assert occupancy >= 0 and programs >= 0
    _copy[lambda meta: (triton.cdiv(M * N, meta["BLOCK"]),)](x, y, M * N)
    log.debug("best: %s", _copy.best_config)
    _k[(programs,)](x, w, y, x.stride(0), N, eps, BLOCK=block)
    return y
