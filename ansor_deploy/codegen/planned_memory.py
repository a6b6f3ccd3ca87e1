"""What a model takes of memory is read from its lowered functions, before they run."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .._tvm import collect, relax, tirx, tvm
from ..runtime.tensors import numpy_dtype
from .lowering import STACK_BYTES
from .memory import Memory, Part
from .tasks import nests
from .weights import Weights


def memory_of(mod: tvm.IRModule, weights: Weights, threads: int = 0) -> Memory:
    """The memory of a lowered module whose functions take their weights as their last arguments.

    threads: of a parallel loop, each with buffers of its own; 0 where the kernels are not scheduled
    yet, and nothing is known of their buffers.
    """
    constants: dict[int, Part] = {}
    inputs: list[Part] = []
    storage: list[Part] = []
    for name, places in weights.places.items():
        function = mod[name]
        users = _users(function)
        parts = [_part(var, users) for var in function.params]
        inputs += parts[: len(parts) - len(places)]
        for place, part in zip(places, parts[len(parts) - len(places) :], strict=True):
            constants.setdefault(place.offset, replace(part, what=f"weights {part.what}"))
        storage += _storage(function, users)
    buffers = sorted(_buffers(mod, threads), key=lambda part: -part.size) if threads else []
    largest = (part for part in buffers[:1] if part.size)
    return Memory(*map(tuple, (constants.values(), inputs, storage, largest)))


def _users(main: relax.Function) -> dict[Any, str]:
    """Of each tensor, the kernel that takes it first: for what another made, that one."""
    users: dict[Any, str] = {}
    for call in collect(main.body, relax.Call):
        if isinstance(call.op, tvm.ir.GlobalVar):
            for argument in call.args:
                users.setdefault(argument, _plain(call.op.name_hint))
    return users


def _plain(name: str) -> str:
    """A function's name without the numbers that make it unique."""
    plain = name.removeprefix("fused_").removesuffix("_prepacked")
    return re.sub(r"(?<=[a-z])\d+(?=_|$)", "", plain)


def _storage(main: relax.Function, users: dict[Any, str]) -> Iterator[Part]:
    """The memory that is allocated in a run, called after the first tensor that lies in it."""
    sizes: dict[Any, int] = {}
    for binding in collect(main.body, relax.VarBinding):
        call = binding.value
        name = getattr(getattr(call, "op", None), "name", "")
        if name == "relax.vm.alloc_storage":
            sizes[binding.var] = int(call.args[0].values[0])
        elif name == "relax.vm.alloc_tensor" and (size := sizes.pop(call.args[0], 0)):
            yield _part(binding.var, users, size)


def _buffers(mod: tvm.IRModule, threads: int) -> Iterator[Part]:
    """Of each kernel the memory that it takes from the heap, once it is lowered that far."""
    kernels = {gv: f for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    for name, func in _opened(tvm.IRModule(kernels)).functions.items():
        shared, own = _heap(func.body), sum(_heap(nest[0].body) for nest in nests(func.body))
        yield Part(f"buffers of {_plain(name.name_hint)}", shared + (threads - 1) * own)


def _opened(kernels: tvm.IRModule) -> tvm.IRModule:
    """Programs with their buffers as small as they become, where they are allocated."""
    t = tvm.s_tir.transform
    passes = [t.CanonicalizeLoop(), t.LowerInitBlock(), t.PlanAndUpdateBufferAllocationLocation()]
    passes += [t.ConvertBlocksToOpaque(), t.CompactBufferAllocation(), t.LowerOpaqueBlock()]
    return tvm.transform.Sequential(passes)(kernels)


def _heap(body: Any) -> int:
    """Bytes of all buffers that a part of a program allocates and that the stack has no room for.

    Those that a parallel loop allocates count once.
    """
    found = [one.buffer for one in collect(body, tirx.AllocBuffer)]
    sizes = [_bytes(one.shape, str(one.dtype)) for one in found if one.scope() == "global"]
    return sum(size for size in sizes if size > STACK_BYTES)


def _bytes(shape: Any, dtype: str) -> int:
    return math.prod(int(n) for n in shape) * numpy_dtype(dtype).itemsize


def _part(var: relax.Var, users: dict[Any, str], size: int = 0) -> Part:
    """A tensor, called after its type and the kernel that uses it."""
    kind = var.ty
    extents = ", ".join(str(int(n)) for n in kind.shape)
    what = f"{kind.dtype}[{extents}] of {users.get(var, 'the graph')}"
    return Part(what, size or _bytes(kind.shape, str(kind.dtype)))
