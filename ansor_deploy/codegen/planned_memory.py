"""Read how much memory a model takes from its lowered functions, before they run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._tvm import collect, relax, shape_of, tvm
from .entry import Entries
from .memory.arena import most_alive
from .memory.callers_memory import original
from .memory.figures import Memory, MemoryUse, total
from .memory.storage import Stored, bytes_of


def memory_of(lowered: tvm.IRModule, made: Entries) -> Memory:
    """The memory of a lowered module and of the library's functions made from it.

    The buffers of kernels are known once these are compiled (`with_buffers`).
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
    return Memory(*map(tuple, (constants.values(), inputs, storage)))


def with_buffers(memory: Memory, heaps: Mapping[str, int]) -> Memory:
    """The memory with the buffers of the kernel that has the largest ones.

    heaps: bytes that kernels take from the heap, by the functions of the model that they compute.
    """
    name, size = max(heaps.items(), key=lambda one: one[1], default=("", 0))
    return replace(memory, buffers=(MemoryUse(f"buffers of {_plain(name)}", size),) * bool(size))


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


def _part(var: relax.Var, users: dict[Any, str]) -> MemoryUse:
    """A tensor's memory, named after its type and the kernel that uses it."""
    named = f"{var.ty.dtype}{list(shape_of(var.ty))}"
    return MemoryUse(f"{named} of {users.get(var, 'the graph')}", bytes_of(var.ty))
