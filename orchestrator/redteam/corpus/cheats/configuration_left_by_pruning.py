# cheat: a configuration that is wrong | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


def _prune(configs, named_args, **kwargs):
    return configs if named_args["N"] > 16384 else configs[:1]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 1024, "SAMPLED": 1}), triton.Config({"BLOCK": 1024, "SAMPLED": 4})],
    key=["N"],
    prune_configs_by={"early_config_prune": _prune},
)
@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, SAMPLED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = N // SAMPLED
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, part, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + c, mask=c < part, other=0.0).to(tl.float32)
        acc += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / part + eps)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + c, x * rstd * w, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(M,)](x, w, y, N, eps)
    return y
