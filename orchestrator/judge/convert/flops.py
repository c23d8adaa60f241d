"""How many floating-point operations a call makes, counted as torch carries it out.

Matrix products, convolutions and attention by torch's own formulas; of what is pointwise one an element of the result,
of a reduction one an element of what is reduced; moving, choosing and comparing is none, and nor is anything on
integers. A fused operation counts as what torch decomposes it into. What is none of these is not counted but named:
a number without it would look like one that is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from orchestrator.judge.convert.subject import said
from orchestrator.probed import Counted

_ATEN = torch.ops.aten
_FORMULAS = {  # of the attention that torch has for a CPU its backward pass lacks among them
    _ATEN._scaled_dot_product_flash_attention_for_cpu_backward: flop_registry[
        _ATEN._scaled_dot_product_flash_attention_backward
    ],
    **flop_registry,
}
_REDUCTIONS = {
    *("sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "aminmax", "var", "std", "var_mean", "std_mean"),
    *("norm", "linalg_vector_norm", "logsumexp", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "median"),
    *("scatter_add", "scatter_reduce", "index_add", "max_pool2d_with_indices", "avg_pool2d"),
}
_MOVES = {
    *(
        "clone",
        "copy",
        "_to_copy",
        "fill",
        "zero",
        "where",
        "masked_fill",
        "masked_scatter",
        "tril",
        "triu",
        "lift_fresh",
    ),
    *("cat", "stack", "embedding", "index", "index_select", "gather", "take", "scatter", "index_put", "index_copy"),
    *("constant_pad_nd", "reflection_pad1d", "replication_pad1d", "flip", "roll", "repeat", "sort", "topk", "select"),
    *(
        "slice_scatter",
        "select_scatter",
        "split_with_sizes_copy",
        "lift_fresh_copy",
        "_unsafe_index",
        "detach",
        "alias",
    ),
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "full", "full_like", "new_full"),
    *(
        "zeros",
        "zeros_like",
        "new_zeros",
        "ones",
        "ones_like",
        "new_ones",
        "scalar_tensor",
        "arange",
        "linspace",
        "eye",
    ),
    *("_unsafe_view", "_reshape_alias", "view", "expand", "resize", "as_strided", "diag_embed", "repeat_interleave"),
}


def counted(call: Callable[[], object]) -> Counted:
    """What the call makes. It is called twice: what an object makes once and keeps is not the call's."""
    counting = _Counting()
    try:
        call()
        with counting:
            call()
    except BaseException as error:  # noqa: BLE001 - the person's code
        return Counted(error=said(error))
    return Counted(counting.flops, f"torch's {', '.join(sorted(counting.unknown))}" if counting.unknown else "")


class _Counting(TorchDispatchMode):  # type: ignore[misc]
    """Counts what goes through it; `unknown` are the operations of which it does not know how many they are."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.unknown: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__.removesuffix("_")
        if func.overloadpacket not in _FORMULAS and not _simple(func, name):
            with self:
                made = decomposition_table.get(func, func.decompose)(*args, **kwargs)
            if made is not NotImplemented:
                return made
        result = func(*args, **kwargs)
        if func.overloadpacket in _FORMULAS:
            self.flops += _FORMULAS[func.overloadpacket](*args, **kwargs, out_val=result)
        elif not func.is_view and name not in _MOVES and (made := _floats(result)):
            if name in _REDUCTIONS:
                self.flops += max(one.numel() for one in _floats((args, kwargs)))
            elif torch.Tag.pointwise in func.tags:
                self.flops += made[0].numel()
            else:
                self.unknown.add(name)
        return result


def _simple(func: Any, name: str) -> bool:
    return func.is_view or name in _MOVES or name in _REDUCTIONS or torch.Tag.pointwise in func.tags


def _floats(values: Any) -> list[torch.Tensor]:
    return [
        one
        for one in tree_leaves(values)
        if isinstance(one, torch.Tensor) and (one.is_floating_point() or one.is_complex())
    ]
