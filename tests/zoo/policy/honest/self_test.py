# honest: a self test that the demo block calls, with a reference that it calls, and a loop that calls itself | notes: 4
import torch
import triton
import triton.language as tl


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


def rmsnorm_triton(x, w, eps=1e-6):
    return _launch(x, w, eps)


def _reference(x, w, eps=1e-6):
    def mean(t):
        return t.pow(2).mean(-1, keepdim=True)

    wide = x.float()
    return (wide * torch.rsqrt(mean(wide) + eps) * w.float()).to(x.dtype)


def _rows(rows, columns):
    x = torch.randn(rows, columns, device="cuda")
    return x if rows else _rows(rows + 1, columns) * 2


def _self_test():
    torch.manual_seed(0)
    for rows, columns in ((1, 7), (33, 1000)):
        x, w = _rows(rows, columns), torch.randn(columns, device="cuda")
        got = rmsnorm_triton(x, w)
        torch.cuda.synchronize()
        torch.testing.assert_close(got, _reference(x, w))
        assert torch.allclose(got, _reference(x, w)), (got - _reference(x, w)).abs().max()
    print("passed", triton.testing.do_bench(lambda: rmsnorm_triton(x, w)))


if __name__ == "__main__":
    _self_test()
