# honest: lists of configs joined and extended at the top
import torch
import triton
import triton.language as tl
import itertools


_BLOCKS = [256, 512]
_BLOCKS += [1024]
_CONFIGS = [triton.Config({"BLOCK": b}, num_warps=w) for b, w in itertools.product(_BLOCKS, (4, 8))]
_CONFIGS.append(triton.Config({"BLOCK": 2048}, num_warps=16))
for _b in (4096, 8192):
    _CONFIGS.append(triton.Config({"BLOCK": _b}, num_warps=16))


def _keep(conf):
    return conf.kwargs["BLOCK"] // conf.num_warps >= 32 or conf.num_stages < 3


def _prune(configs, nargs, **kwargs):
    args = {**nargs, **kwargs}
    if args["N"] <= 1024 and len(configs) > 2:
        return sorted(configs, key=lambda c: c.num_warps)[:4]
    return configs


@triton.autotune(list(filter(_keep, _CONFIGS)), key=["N"], prune_configs_by={"early_config_prune": _prune})
@triton.jit
def _t(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + c, tl.load(x_ptr + c, mask=c < N, other=0.0), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _t[(1,)](x, w, y, x.shape[-1], eps)
    return y
