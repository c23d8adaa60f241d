# honest: a question about the device in a try, a persistent grid
import torch
import triton
import triton.language as tl


def _num_sms():
    try:
        return torch.cuda.get_device_properties("cuda").multi_processor_count
    except (RuntimeError, AssertionError):
        return 8


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        base = row.to(tl.int64) * N
        acc = tl.zeros([BLOCK], tl.float32)
        for c0 in range(0, N, BLOCK):
            c = c0 + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32)
            acc += x * x
        rstd = tl.rsqrt(tl.sum(acc, axis=0) / N + eps)
        for c0 in range(0, N, BLOCK):
            c = c0 + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
            tl.store(y_ptr + base + c, x * rstd * w, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(min(M, _num_sms() * 2),)](x, w, y, M, N, eps, BLOCK=min(2048, triton.next_power_of_2(N)))
    return y
