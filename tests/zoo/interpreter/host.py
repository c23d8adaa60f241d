"""Host code that asks about the GPU, on a machine without one."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy(X, Y, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + c, tl.load(X + c, mask=c < n), mask=c < n)


def copied(x, **kwargs):
    y = torch.empty_like(x, **kwargs)
    copy[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    assert torch.equal(x, y)


def case_device_guards():
    x = torch.randn(100)
    with torch.cuda.device(x.device):
        copied(x)
    with torch.cuda.device_of(x), torch.cuda.device(0):
        copied(x)


def case_is_cuda():
    x = torch.randn(100)
    assert x.is_cuda and torch.nn.Parameter(x).is_cuda
    copied(x)
    assert x.cpu() is x and x.clone().is_cuda and str(x)


def case_device_is_the_cards():
    x = torch.randn(100)
    assert x.device.type == "cuda" and x.device.index == x.get_device() == torch.cuda.current_device()
    assert not x.is_cpu and torch.nn.Parameter(x).device == x.device == torch.device("cuda:0")
    copied(x, device=x.device)
    for made in (
        torch.empty_permuted((4, 4), (1, 0), device=x.device),
        torch.zeros(4, device=x.device.type),
        torch.full((4,), 1.0, device=f"cuda:{x.get_device()}"),
        x.new_empty(4, device=x.device),
        x.to(x.device, torch.float16),
        x.to(device=x.device),
    ):
        assert made.device == x.device
    with torch.cuda.device(x.device):
        copied(x.half())
    assert torch.empty(1, device="meta").device.type == "meta" and "cuda:0" in str(x.device)


def case_torch_properties():
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    assert (properties.multi_processor_count, properties.warp_size) == (132, 32)
    assert torch.cuda.get_device_capability(torch.device("cpu")) == (properties.major, properties.minor) == (9, 0)
    assert "H100" in torch.cuda.get_device_name()
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.is_bf16_supported()


def case_streams():
    torch.cuda.current_stream().synchronize()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        copied(torch.randn(10))


def case_triton_driver():
    active = triton.runtime.driver.active
    target = active.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", 90, 32)
    properties = active.utils.get_device_properties(active.get_current_device())
    assert properties["multiprocessor_count"] == 132 and properties["max_shared_mem"] == 232448
    assert active.get_active_torch_device() == torch.zeros(1).device


def case_made_on_the_gpu():
    x = torch.randn(100, device="cuda")
    copied(x, device="cuda:0")
    y = x.new_zeros(100, device=torch.cuda.current_device()).to("cuda", torch.float16)
    assert y.dtype == torch.float16 and y.device == x.device == x.cuda().device


def case_no_clock_is_a_limit():
    from orchestrator.judge import interpreter

    try:
        triton.testing.do_bench(lambda: None)
    except Exception as error:
        assert interpreter.is_limit(error)


def case_dtype_conversions_controls():
    x = torch.randn(10)
    assert x.to(torch.float16).dtype == torch.float16 and x.to(x.half()).dtype == torch.float16
    assert torch.full((2,), 1.0, device="cpu").tolist() == [1.0, 1.0] and torch.tensor([1], device=None).item() == 1
