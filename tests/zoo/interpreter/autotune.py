"""Kernels behind `@triton.autotune` and `@triton.heuristics`."""

import torch
import triton
import triton.language as tl

N = 300
CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (64, 256) for warps in (2, 4)]


def repaired():
    from orchestrator.judge import interpreter

    return interpreter


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def double(X, Y, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + c, tl.load(X + c, mask=c < n) * 2, mask=c < n)


def case_first_configuration():
    x, y = torch.randn(N), torch.empty(N)
    double[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, N)
    assert torch.equal(y, 2 * x)
    assert double.best_config is CONFIGS[0]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, pre_hook=lambda args: args["Y"].zero_()), triton.Config({"BLOCK": 256})],
    key=[],
)
@triton.jit
def accumulate(X, Y, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(Y, tl.sum(tl.load(X + c, mask=c < n, other=0.0)))


def case_a_configuration_has_a_hook():
    x, y = torch.ones(N), torch.full((1,), 5.0)
    accumulate[(5,)](x, y, N)
    assert y.item() == N, y


@triton.autotune(configs=CONFIGS[::2], key=["n"], reset_to_zero=["Y"])
@triton.jit
def reset(X, Y, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(Y, tl.sum(tl.load(X + c, mask=c < n, other=0.0)))


def case_reset_to_zero():
    x, y = torch.ones(N), torch.zeros(1)
    grid = lambda meta: (triton.cdiv(N, meta["BLOCK"]),)
    reset[grid](x, y, N)
    assert y.item() == N, "what the trial left was not reset"
    reset[grid](x, y, N)
    assert y.item() == 2 * N, "only a trial resets; a later call adds"


@triton.autotune(configs=CONFIGS[::2], key=["n"], restore_value=["X"])
@triton.jit
def in_place(X, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(X + c, tl.load(X + c, mask=c < n) + 1, mask=c < n)


def case_restore_value():
    x = torch.zeros(N)
    in_place[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, N)
    assert torch.equal(x, torch.ones(N)), x


@triton.autotune(configs=CONFIGS[::2], key=["n"])
@triton.jit
def not_restored(X, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(X + c, tl.load(X + c, mask=c < n) + 1, mask=c < n)


def case_a_trial_leaves_its_traces():
    x = torch.zeros(N)
    not_restored[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, N)
    assert torch.equal(x, torch.full((N,), 2.0)), "on a GPU the first call is preceded by trials, too"


def keep_large(configs, named, **kwargs):
    return [config for config in configs if config.kwargs["BLOCK"] >= named["n"] // 2]


@triton.autotune(configs=CONFIGS, key=["n"], prune_configs_by={"early_config_prune": keep_large})
@triton.jit
def pruned(Y, n, BLOCK: tl.constexpr):
    tl.store(Y, BLOCK)


def case_pruning():
    y = torch.zeros(1)
    pruned[(1,)](y, N)
    assert y.item() == 256, y


@triton.autotune(configs=CONFIGS, key=["n"], do_bench=lambda call, quantiles: 1 / 0)
@triton.jit
def own_benchmark(Y, n, BLOCK: tl.constexpr):
    tl.store(Y, BLOCK)


def case_every_configuration_can_be_chosen():
    y, seen = torch.zeros(1), []
    for index in range(4):
        repaired().choose_configuration(index)
        own_benchmark[(1,)](y, N)
        seen.append((y.item(), own_benchmark.best_config.num_warps))
        assert repaired().configurations() == 4
    repaired().choose_configuration(0)
    assert seen == [(64, 2), (64, 4), (256, 2), (256, 4)], seen


@triton.autotune(configs=CONFIGS[::2], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def heuristic(Y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.store(Y, BLOCK + EVEN)


def case_heuristics_below_autotune():
    y = torch.zeros(1)
    heuristic[(1,)](y, 128)
    assert y.item() == 65, y


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def heuristic_only(X, Y, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(Y + c, tl.load(X + c, mask=c < n), mask=c < n)


def case_heuristics_controls():
    x, y = torch.randn(N), torch.empty(N)
    heuristic_only[(1,)](x, y, N)
    assert torch.equal(x, y)
