"""Compile a scheduled program for a GPU to machine code and to the launches of one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..._tvm import op_name, tirx, tvm, tvm_target
from ...runtime.gpu_code import GpuKernel, Launch
from ...target import Target
from ..memory.storage import bytes_of
from . import nvrtc
from .launches import device_code, split

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Source:
    """A program as CUDA C++, with its launches and buffers as `GpuKernel` has them."""

    text: str
    launches: tuple[Launch, ...]
    workspace: tuple[int, ...]


def gpu_kernel(func: Any, symbol: str, target: Target, arch: str) -> GpuKernel:
    """The code of a scheduled PrimFunc; ValueError where it is no program for a GPU.

    arch: the architecture of the target's GPU. `nvrtc.CudaError` where the compiler refuses it.
    """
    made = gpu_source(func, symbol, target)
    return GpuKernel(made.launches, made.workspace, *nvrtc.compiled(made.text, arch))


def gpu_source(func: Any, symbol: str, target: Target) -> Source:
    """The source of a scheduled PrimFunc; ValueError where it is no program for a GPU."""
    mod = tvm.IRModule({symbol: func.with_attr("global_symbol", symbol)})
    lowered = split(tirx.transform.BindTarget(tvm_target(target))(mod))
    host, kernels = lowered[symbol], dict(lowered.functions.items())
    del kernels[lowered.get_global_var(symbol)]
    launches, workspace = _read(host)
    return Source(device_code(kernels), launches, workspace)


def _read(host: Any) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """The launches of the host's part, which may do nothing else, and the sizes of its buffers."""
    places = {buffer: at for at, buffer in enumerate(host.params)}
    launches: list[Launch] = []
    workspace: list[int] = []
    known = len(places)
    for one in _statements(host.body):
        if isinstance(one, tirx.AllocBuffer):
            places[one.buffer] = known + len(workspace)
            workspace.append(bytes_of(one.buffer))
        elif isinstance(one, tirx.Evaluate):
            launches.append(_launch(one.value, places))
        elif isinstance(one, tirx.AssertStmt):
            launches.append(_check(one, places))
        elif isinstance(one, tirx.DeclBuffer):
            places[one.buffer] = _place(one.data, places)
        else:
            _refuse(one)
    return tuple(launches), tuple(workspace)


def _statements(body: Any) -> Sequence[Any]:
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _refuse(part: Any) -> NoReturn:
    raise ValueError(f"a part of it runs on no GPU ({type(part).__name__})")


def _launch(call: Any, places: Mapping[Any, int]) -> Launch:
    if op_name(call) != "tirx.call_ffi_kernel":
        _refuse(call)
    name, *rest = call.args
    axes = [str(axis) for axis in call.attrs.launch_params]
    given, extents = rest[: len(rest) - len(axes)], rest[len(rest) - len(axes) :]
    sizes = {axis: int(extent) for axis, extent in zip(axes, extents, strict=True)}
    grid, block = (
        tuple(sizes.get(f"{kind}.{axis}", 1) for axis in _AXES)
        for kind in ("blockIdx", "threadIdx")
    )
    return Launch(str(name.value), grid, block, tuple(_place(one, places) for one in given))


def _check(assertion: Any, places: Mapping[Any, int]) -> Launch:
    """The assertion that a buffer's first 32-bit element is zero, as a launch without a grid."""
    condition = assertion.condition
    load = getattr(condition, "a", None)
    if not (isinstance(condition, tirx.EQ) and isinstance(load, tvm.ir.TensorLoad)):
        _refuse(assertion)
    text = "".join(str(part.value) for part in assertion.message_parts)
    return Launch(text, (), (), (places[load.source],))


def _place(pointer: Any, places: Mapping[Any, int]) -> int:
    """The buffer that a pointer belongs to."""
    if op_name(pointer) != "tirx.buffer_data":
        raise ValueError("a part of it takes what is no tensor")
    return places[pointer.args[0]]
