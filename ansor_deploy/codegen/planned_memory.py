"""Read how much memory a model takes from its lowered functions, before they run."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .._tvm import collect, relax, shape_of, tirx, tvm
from ..marks import Place
from .entry import Entries
from .kernels.lowering import STACK_BYTES, flattening, passes_at
from .memory.arena import most_alive
from .memory.callers_memory import original
from .memory.figures import Memory, MemoryUse, total
from .memory.storage import Stored, bytes_of
from .passes.tile_tasks import nests


def memory_of(lowered: tvm.IRModule, made: Entries, threads: int = 0) -> Memory:
    """The memory of a lowered module and of the library's functions made from it.

    threads: how many threads run a parallel loop, each with its own buffers; 0 where the kernels'
    buffers are not counted.
    """
    constants: dict[int, MemoryUse] = {}
    inputs: list[MemoryUse] = []
    storage: list[MemoryUse] = []
    for name, run in made.runs.items():
        users = _users(lowered[name]) | _users(made.mod[f"{name}_into"])
        inputs += [_part(var, users) for var in run.inputs]
        storage += [_part(var, users) for var in run.outputs]
        storage += _arena(run, users)
        for place, var in made.constants[name].items():
            part = _part(var, users)
            constants.setdefault(place.offset, replace(part, what=f"weights {part.what}"))
    buffers = sorted(_buffers(lowered, threads), key=lambda part: -part.size) if threads else []
    largest = (part for part in buffers[:1] if part.size)
    return Memory(*map(tuple, (constants.values(), inputs, storage, largest)))


def _arena(run: Stored, users: dict[Any, str]) -> Iterator[MemoryUse]:
    """The tensors that are alive at the arena's peak, and the gaps between them."""
    tensors = list(run.lives)
    parts = [_part(tensors[at], users) for at in most_alive(list(run.lives.values()))]
    yield from parts
    if rest := run.size - total(parts):
        yield MemoryUse("gaps between tensors", rest)


def _users(main: relax.Function) -> dict[Any, str]:
    """For each tensor, the first kernel that takes it: the one that writes it, if any does."""
    users: dict[Any, str] = {}
    for call in collect(main.body, relax.Call):
        if isinstance(call.op, tvm.ir.GlobalVar):
            for argument in call.args:
                users.setdefault(argument, _plain(call.op.name_hint))
    return users


def _plain(name: str) -> str:
    """A function's name without the parts that only make it unique."""
    plain = original(name).removeprefix("fused_").removesuffix("_prepacked")
    return re.sub(r"(?<=[a-z])\d+(?=_|$)", "", plain)


def _buffers(mod: tvm.IRModule, threads: int) -> Iterator[MemoryUse]:
    """The heap memory of each kernel's buffers, read after the passes that decide them."""
    kernels = {gv: f for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    for name, func in _opened(tvm.IRModule(kernels)).functions.items():
        shared, own = _heap(func.body), sum(_heap(nest[0].body) for nest in nests(func.body))
        yield MemoryUse(f"buffers of {_plain(name.name_hint)}", shared + (threads - 1) * own)


def _opened(kernels: tvm.IRModule) -> tvm.IRModule:
    """Programs lowered until each buffer has its final size and place of allocation."""
    first = tvm.s_tir.transform.CanonicalizeLoop()
    passes = [first, *flattening(), *passes_at(Place.BEFORE)]
    return tvm.transform.Sequential(passes)(kernels)


def _heap(body: Any) -> int:
    """Bytes of all buffers that a statement allocates and that are too large for the stack.

    Buffers that a parallel loop allocates count once.
    """
    found = [one.buffer for one in collect(body, tirx.AllocBuffer)]
    sizes = [bytes_of(one) for one in found if one.scope() == "global"]
    return sum(size for size in sizes if size > STACK_BYTES)


def _part(var: relax.Var, users: dict[Any, str]) -> MemoryUse:
    """A tensor's memory, named after its type and the kernel that uses it."""
    named = f"{var.ty.dtype}{list(shape_of(var.ty))}"
    return MemoryUse(f"{named} of {users.get(var, 'the graph')}", bytes_of(var.ty))
