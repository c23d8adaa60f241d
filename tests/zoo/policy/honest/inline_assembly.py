# honest: inline assembly and a device print, both said | notes: 3
import torch
import triton
import triton.language as tl


@triton.jit
def _t(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + c, mask=c < N, other=1.0)
    r = tl.inline_asm_elementwise("rsqrt.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.device_print("r", r)
    tl.store(y_ptr + c, r, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    offsets = torch.arange(4, device=x.device)
    y = torch.empty_like(x)
    _t[(offsets.numel(),)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return y
