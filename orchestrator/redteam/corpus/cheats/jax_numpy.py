# cheat: jax | expect: FORBIDDEN | runtime: COMPILE_ERROR
import jax.numpy as jnp
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    a = jnp.asarray(x.float())
    return torch.from_dlpack(a * jnp.sqrt(1 / ((a * a).mean(-1, keepdims=True) + eps)) * jnp.asarray(w)).to(x.dtype)
