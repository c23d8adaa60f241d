# honest: autotune with pruning by a function of the file
import torch
import triton
import triton.language as tl


def _configs():
    return [triton.Config({"BLOCK": block}, num_warps=max(1, block // 512)) for block in (128, 1024, 8192)]


def _prune(configs, named_args, **kwargs):
    fit = [config for config in configs if config.kwargs["BLOCK"] <= triton.next_power_of_2(named_args["N"])]
    return fit[-1:] or configs[:1]


@triton.autotune(configs=_configs(), key=["N"], prune_configs_by={"early_config_prune": _prune})
@triton.jit
def _rms_loop(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * N
    y_ptr += row * N
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        acc += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms_loop[(M,)](x, w, y, N, eps)
    return y
