# honest: configs from a helper of the file, config pruning by arithmetic
import torch
import triton
import triton.language as tl


def _configs():
    found = []
    for block in (256, 512, 1024):
        for warps in (2, 4, 8):
            found.append(triton.Config({"BLOCK": block}, num_warps=warps))
    return found


def _prune(configs, named_args, **kwargs):
    n = named_args["N"]
    kept = [c for c in configs if c.kwargs["BLOCK"] <= max(256, triton.next_power_of_2(n)) and c.num_warps <= 8]
    return kept or configs


@triton.autotune(configs=_configs(), key=["N"], prune_configs_by={"early_config_prune": _prune})
@triton.jit
def _t(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + c, tl.load(x_ptr + c, mask=c < N, other=0.0), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _t[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, w, y, x.shape[-1], eps)
    return y
