"""The allow-lists: every module, torch name, method and builtin that a kernel file may mention.

Owns the lists and nothing else. They were counted on public kernel libraries; what is on none of them is refused.
Paths are dotted and resolved through the file's imports, so an alias does not change what a name is.
"""

from __future__ import annotations
import __future__

import collections.abc
import math
import typing


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# --- modules

# Names that must stand for one thing only; any other alias of a module is free.
CANONICAL = {"torch": "torch", "triton": "triton", "tl": "triton.language"}

# Modules that may be imported, and mentioned as the left part of a dotted name.
MODULES = words(
    """torch torch.autograd torch.autograd.function torch.amp torch.library torch.cuda torch.cuda.amp torch.nn
    torch.version torch.ops torch.compiler torch.backends torch.backends.cuda torch.backends.cuda.matmul torch.xpu
    torch.accelerator torch.nn.parameter torch.backends.cudnn torch.types triton triton.language
    triton.language.extra triton.language.extra.libdevice triton.language.extra.cuda
    triton.language.extra.cuda.libdevice triton.language.extra.hip triton.language.extra.hip.libdevice
    triton.language.math triton.language.standard triton.language.core
    triton.runtime triton.runtime.driver triton.runtime.driver.active
    triton.runtime.driver.active.utils triton.tools triton.tools.tensor_descriptor math typing functools
    dataclasses enum collections collections.abc contextlib itertools logging numbers operator warnings __future__
    packaging packaging.version types"""
)

STDLIB = {
    "functools": words("partial lru_cache cache wraps reduce"),
    "dataclasses": words("dataclass field replace asdict astuple fields"),
    "enum": words("Enum IntEnum StrEnum Flag IntFlag auto unique"),
    "collections": words("OrderedDict defaultdict deque namedtuple Counter"),
    "contextlib": words("nullcontext contextmanager AbstractContextManager"),
    "itertools": words("product chain chain.from_iterable repeat cycle islice zip_longest count"),
    "logging": words("getLogger Logger DEBUG INFO WARNING ERROR CRITICAL NOTSET"),
    "operator": words("mul add"),
    "numbers": words("Number Integral Real"),
    "types": words("SimpleNamespace"),
    "warnings": words("warn filterwarnings simplefilter"),
    "packaging.version": words("Version parse InvalidVersion"),
    "typing": frozenset(typing.__all__) - {"get_type_hints", "ForwardRef"},
    "math": frozenset(name for name in dir(math) if not name.startswith("_")),
    "collections.abc": frozenset(collections.abc.__all__),
    "__future__": frozenset(__future__.all_feature_names),
}
STDLIB_PATHS = frozenset(f"{module}.{name}" for module, listed in STDLIB.items() for name in listed)

# --- torch on the host

DTYPES = frozenset(
    f"torch.{name}"
    for name in words(
        """float32 float float64 double float16 half bfloat16 uint8 uint16 uint32 uint64 int8 int16 short int32 int
        int64 long bool complex32 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz
        float8_e8m0fnu float4_e2m1fn_x2 quint8 qint8"""
    )
)
MAKERS = words(
    """torch.empty torch.empty_like torch.empty_strided torch.empty_permuted torch.zeros torch.zeros_like torch.full
    torch.full_like torch.ones torch.ones_like torch.tensor torch.nn.Parameter torch.nn.parameter.Parameter
    torch.arange"""
)
PLACED = words("torch.empty torch.empty_strided torch.empty_permuted torch.zeros torch.full torch.ones torch.arange")
VIEWS = frozenset(  # functional forms of the view methods
    f"torch.{name}"
    for name in words(
        """reshape flatten squeeze unsqueeze transpose permute t narrow select as_strided movedim moveaxis swapaxes
        swapdims unflatten broadcast_to"""
    )
)
PARTS = words("""torch.split torch.chunk torch.unbind torch.broadcast_tensors torch.tensor_split""")
GUARDS = words(
    """torch.cuda.device torch.cuda.device_of torch.cuda._DeviceGuard torch.no_grad torch.enable_grad
    torch.inference_mode contextlib.nullcontext torch.xpu.device"""
)
QUERIES = words(
    """torch.Tensor torch.Size torch.device torch.dtype torch.layout torch.memory_format torch.SymInt
    torch.types.Device torch.strided torch.contiguous_format torch.preserve_format torch.channels_last
    torch.channels_last_3d torch.finfo torch.iinfo torch.promote_types torch.result_type torch.broadcast_shapes
    torch.can_cast torch.is_tensor torch.is_floating_point torch.is_complex torch.numel torch.get_default_dtype
    torch.is_grad_enabled torch.inf torch.nan torch.pi torch.e torch.__version__ triton.__version__
    torch.is_inference_mode_enabled torch.is_autocast_enabled torch.is_autocast_cpu_enabled
    torch.get_autocast_dtype torch.get_autocast_gpu_dtype torch.get_autocast_cpu_dtype
    torch.amp.is_autocast_available torch.are_deterministic_algorithms_enabled torch.get_float32_matmul_precision
    torch.cuda.current_device torch.cuda.get_device_properties torch.cuda.get_device_capability
    torch.cuda.get_device_name torch.cuda.current_stream torch.cuda.is_available torch.cuda.device_count
    torch.cuda.is_bf16_supported torch.version.hip torch.version.cuda torch.xpu.is_available
    torch.xpu.current_device torch.xpu.get_device_properties torch.accelerator.current_accelerator
    torch.accelerator.is_available torch.accelerator.current_device_index torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.fp32_precision torch.backends.cudnn.allow_tf32 torch.compiler.is_compiling
    torch.jit.is_scripting torch.jit.is_tracing
    torch.autograd.function.FunctionCtx torch.FloatTensor torch.LongTensor torch.IntTensor torch.BoolTensor
    torch.HalfTensor torch.BFloat16Tensor torch.autograd.Function torch.nn.Module torch.library.wrap_triton
    torch.cuda.set_device torch.ops.aten.is_non_overlapping_and_dense torch._check torch._check_value
    torch._check_type torch._check_index torch._check_not_implemented torch._assert"""
)
CHECKS = frozenset(name for name in QUERIES if name.startswith(("torch._check", "torch._assert")))  # of plain values
ASKING = words(  # what may fail where there is no device, and may stand in a try
    """torch.device torch.cuda.current_device torch.cuda.get_device_properties torch.cuda.get_device_capability
    torch.cuda.get_device_name torch.cuda.is_available torch.cuda.device_count torch.accelerator.current_accelerator
    torch.xpu.current_device torch.xpu.get_device_properties triton.runtime.driver.active.get_current_target
    triton.runtime.driver.active.get_current_device triton.runtime.driver.active.get_active_torch_device
    triton.runtime.driver.active.utils.get_device_properties"""
)
TORCH_DECORATORS = words(
    """torch.amp.custom_fwd torch.amp.custom_bwd torch.cuda.amp.custom_fwd torch.cuda.amp.custom_bwd
    torch.library.custom_op torch.library.triton_op torch.library.register_fake torch.library.register_autograd
    torch.autograd.function.once_differentiable torch.compiler.disable torch.compiler.allow_in_graph"""
)
TORCH = DTYPES | MAKERS | VIEWS | PARTS | QUERIES | TORCH_DECORATORS | frozenset(g for g in GUARDS if g[0] == "t")

# Refused for what they reach, not for what they compute: process state, streams, memory, files, internals.
TORCH_FORBIDDEN = tuple(
    f"torch.{name}"
    for name in words(
        """_C _dynamo _guards _utils _inductor _subclasses _library _logging utils multiprocessing distributed load
        save hub package serialization manual_seed seed initial_seed get_rng_state set_rng_state random Generator
        default_generator set_default_dtype set_default_device set_default_tensor_type use_deterministic_algorithms
        set_float32_matmul_precision set_num_threads set_printoptions set_warn_always set_flush_denormal profiler
        autograd.profiler autograd.graph autograd._ autograd.set_detect_anomaly overrides testing futures classes
        storage UntypedStorage TypedStorage from_file frombuffer from_dlpack from_numpy asarray monitor
        torch_version cuda.Stream cuda.stream cuda.set_stream cuda.default_stream cuda.ExternalStream
        cuda.StreamContext cuda.Event cuda.CUDAGraph cuda.graph cuda.graphs cuda.make_graphed_callables
        cuda.graph_pool_handle cuda.memory cuda.mem cuda.caching_allocator cuda.change_current_allocator
        cuda.CUDAPluggableAllocator cuda.MemPool cuda.empty_cache cuda.max_memory cuda.reset cuda.synchronize
        cuda.nvtx cuda.profiler cuda.cudart cuda.random cuda.manual_seed cuda.seed cuda.get_rng_state
        cuda.set_rng_state cuda.initial_seed cuda.set_per_process cuda._ cuda.ipc_collect cuda.list_gpu_processes
        cuda.init library.Library library.impl library.define library.register_kernel
        library.register_torch_dispatch library.register_vmap library.fallthrough library.opcheck backends __
        nn.modules sys os ctypes builtins types inspect importlib threading"""
    )
)

# --- triton on the host

TRITON = words(
    """triton.cdiv triton.next_power_of_2 triton.Config triton.autotune triton.heuristics triton.jit triton.constexpr
    triton.constexpr_function triton.set_allocator
    triton.runtime.driver.active.get_current_target triton.runtime.driver.active.get_current_device
    triton.runtime.driver.active.get_active_torch_device triton.runtime.driver.active.get_current_stream
    triton.runtime.driver.active.utils.get_device_properties triton.tools.tensor_descriptor.TensorDescriptor
    triton.tools.tensor_descriptor.TensorDescriptor.from_tensor triton.tools.tensor_descriptor"""
)
KERNEL_TYPES = words("triton.JITFunction triton.runtime.JITFunction")  # to annotate with, no more
LANGUAGE = "triton.language"
NAN_MODES = "triton.language.PropagateNan"  # an enumeration, for tl.maximum and tl.minimum
CONSTEXPR = frozenset({"triton.constexpr", "triton.language.constexpr"})
LIBDEVICE = (  # every public function in these is a device function
    "triton.language.math",
    "triton.language.standard",
    "triton.language.extra.libdevice",
    "triton.language.extra.cuda.libdevice",
    "triton.language.extra.hip.libdevice",
)
LANGUAGE_FORBIDDEN = words(  # modules, and what reaches below the public functions
    """core semantic extra extern extern_elementwise dispatch builtin pi32_t ir str_to_ty target_info random math
    standard jit wraps"""
)
CORE = words(  # what may be reached as tl.core.NAME; the module itself reaches builtins and inspect
    """constexpr tensor dtype float32 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 int1 load store
    arange zeros full reshape broadcast broadcast_to expand_dims permute trans join split cast view program_id
    num_programs where reduce associative_scan gather dot static_range range static_assert atomic_add maximum minimum"""
)
CONFIG_FORBIDDEN = words("pre_hook post_hook extern_libs do_bench")

# --- what may decorate

DECORATORS = TORCH_DECORATORS | words(
    """triton.jit triton.constexpr_function triton.autotune triton.heuristics staticmethod classmethod property
    functools.wraps functools.lru_cache functools.cache torch.no_grad torch.inference_mode dataclasses.dataclass
    contextlib.contextmanager enum.unique"""
)
CACHING = frozenset({"functools.lru_cache", "functools.cache"})
REGISTERING = frozenset({"register_fake", "register_autograd"})  # attributes of the file's own custom_op
ENUMS = words("enum.Enum enum.IntEnum enum.StrEnum enum.Flag enum.IntFlag")
BASES = ENUMS | words(
    "torch.autograd.Function torch.autograd.function.Function torch.nn.Module typing.NamedTuple typing.TypedDict"
)
MEMBERS = frozenset({"str", "int"})  # what an enumeration's members may be besides
PLAIN_BASES = words("object typing.Protocol typing.Generic")
AUTOGRAD = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})

# --- attributes and methods

TENSOR_FACTS = words(
    """shape device dtype ndim is_cuda requires_grad itemsize nbytes layout is_leaf is_meta is_cpu is_sparse
    is_quantized is_xpu is_nested"""
)
TENSOR_VIEW_ATTRIBUTES = words("T mT data")
TENSOR_QUERIES = words(
    """stride size numel nelement dim ndimension element_size is_contiguous data_ptr storage_offset is_floating_point
    is_complex get_device is_signed is_conj is_neg"""
)
UNVARIED = words("requires_grad is_leaf storage_offset")  # facts that are the same in every case of a verdict
TENSOR_VIEWS = words(
    """contiguous view reshape view_as reshape_as flatten squeeze unsqueeze transpose permute t expand expand_as
    select narrow detach as_strided swapaxes swapdims movedim moveaxis unflatten ravel broadcast_to"""
)
TENSOR_PARTS = words("split chunk unbind tensor_split")
TENSOR_MAKERS = words("""new_empty new_zeros new_full new_ones new_empty_strided zero_ fill_ requires_grad_""")
TENSOR_METHODS = TENSOR_QUERIES | TENSOR_VIEWS | TENSOR_PARTS | TENSOR_MAKERS
EVIDENCE = (TENSOR_FACTS | TENSOR_METHODS) - {  # what a dtype, a device, a list or a string has too is none
    "itemsize",
    "is_floating_point",
    "is_complex",
    "is_signed",
    "size",
    "split",
    "T",
    "data",
    "device",
    "dtype",
    "dim",
    "index",
    "t",
    "view",
}

GREY_METHODS = {
    "item": "reads a value back to the host and waits for the GPU",
    "tolist": "reads values back to the host and waits for the GPU",
    "clone": "copies a tensor by torch",
    "copy_": "copies a tensor by torch",
    "cpu": "copies a tensor to the CPU",
    "cuda": "copies a tensor to the GPU",
} | dict.fromkeys(
    words("""to type type_as float half double bfloat16 int long short char byte bool"""),
    "casts or copies a tensor by torch, a pass over memory outside the kernel",
)

PLAIN_ATTRIBUTES = words(
    """type index multi_processor_count major minor total_memory name warp_size gcnArchName L2_cache_size
    max_threads_per_multi_processor shared_memory_per_multiprocessor shared_memory_per_block
    shared_memory_per_block_optin regs_per_multiprocessor gpu_eu_count gpu_subslice_count max_compute_units max min
    eps tiny smallest_normal bits resolution backend arch value micro release base_version cuda_stream
    is_floating_point is_signed itemsize kwargs num_warps num_stages num_ctas maxnreg all_kwargs primitive_bitwidth
    append extend insert pop get items keys values update setdefault copy count sort reverse remove clear add discard
    union intersection difference issubset issuperset popitem appendleft popleft fromkeys most_common format join
    split lower upper strip startswith endswith replace rsplit lstrip rstrip isdigit partition find removeprefix
    removesuffix title capitalize zfill ljust rjust splitlines encode bit_length bit_count is_integer debug info
    warning error critical exception isEnabledFor numel value element_ty start stop step args constants"""
)
MUTATORS = {  # method of a container -> positions of the arguments it stores
    "append": (0,),
    "extend": (0,),
    "insert": (1,),
    "update": (0,),
    "setdefault": (1,),
    "add": (0,),
    "appendleft": (0,),
}
# Facts of a kernel that warmup compiled; what else it has launches (run, function, [grid]) or is its code.
COMPILED = words("n_regs n_spills metadata _init_handles")
COMPILED_METADATA = words("shared num_warps num_stages num_ctas")
RECORD_METHODS = words("_replace _asdict")  # of a named tuple
NN_MODULE_ATTRIBUTES = words("training register_buffer register_parameter extra_repr")
CTX_METHODS = words("""save_for_backward mark_non_differentiable mark_dirty set_materialize_grads""")
TYPE_NAMES = frozenset({"__name__", "__qualname__"})  # of a type or a function: a text
CLASS_MAGIC = words("__slots__ __doc__ __match_args__")  # what a class body may assign besides plain names
MODULE_MAGIC = words("__all__ __version__ __author__ __email__ __license__ __copyright__ __doc__ __date__ __status__")
FRAME_ATTRIBUTES = words(
    """gi_frame cr_frame ag_frame tb_frame tb_next f_back f_globals f_locals f_builtins f_code gi_code cr_code
    func_globals func_code mro handle"""
)

# --- builtins

BUILTINS = words(
    """min max isinstance issubclass range len list int tuple getattr float hasattr sorted bool str dict set frozenset
    enumerate zip map filter any all abs sum round pow divmod reversed repr callable type super property
    staticmethod classmethod slice next iter object Ellipsis NotImplemented ValueError TypeError RuntimeError
    AssertionError NotImplementedError ImportError ModuleNotFoundError AttributeError KeyError IndexError Exception
    OSError UserWarning DeprecationWarning RuntimeWarning FutureWarning Warning ArithmeticError ZeroDivisionError
    LookupError MemoryError __debug__"""
)
ERRORS = frozenset(name for name in BUILTINS if name.endswith(("Error", "Warning", "Exception")))
# In a kernel: what Triton knows, and what takes numbers. Its interpreter runs the body as Python, with all its reach.
KERNEL_BUILTINS = words(
    """range float int bool min max pow sum list tuple len abs all any round divmod isinstance enumerate zip reversed
    print"""
) | frozenset(name for name in BUILTINS if name.endswith(("Error", "Exception")))
TENSOR_SAFE_BUILTINS = ERRORS | words(
    """isinstance type callable list tuple dict set enumerate zip map filter reversed iter next getattr hasattr len
    slice super issubclass"""
)
ITEM_BUILTINS = frozenset({"int", "float", "bool"})  # `.item()` by another name
DEMO_PREFIXES = ("triton.testing", "torch.testing")
