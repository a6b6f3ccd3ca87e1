"""Programs that are alike but for numbers are one, which reads them.

    y = uint8(round(float32(int32(x) - 131) * 0.25) + 7)       and the same with 128, 0.5 and 9
    -->
    y = uint8(round(float32(int32(x) - int32(b[0])) * f[0]) + float32(b[1]))

Each layer of a quantised network has scales and zero points of its own: of twelve equal layers
that makes twelve times the tasks to be tuned, and kernels to be compiled. Numbers in which no two
programs differ stay where they are. What fits a byte is read as one, by which it is known to be
whole and small (`codegen/passes/rounding.py`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._tvm import Structure, collect, op_name, relax, structural_map, structural_mutate, tirx, tvm
from ...space.canonical_text import normalized
from ..operators.signs import BYTES
from .dataflow import constant_of

_NUMBERS = ("float32", "int32", "int16")  # the last ones as int32, if they fit no byte
_Column = tuple[float, ...]  # a number of each of several programs


def merged_alike(mod: tvm.IRModule) -> tvm.IRModule:
    """The fused module, with one function for all that differ in numbers alone."""
    operands = _operands(mod["main"])
    groups: dict[Structure, dict[Any, _Column]] = defaultdict(dict)
    for name in operands:
        shape, numbers = _without_numbers(mod[name])
        groups[shape][name] = numbers
    builder = relax.BlockBuilder(mod)
    made: dict[Any, tuple[Any, list[Any]]] = {}  # the function that takes a place, and its numbers
    for members in groups.values():
        (first, *_), columns = members, list(zip(*members.values(), strict=True))
        if (arrays := _Arrays.of(columns)) is not None:
            func = _reading(mod[first], operands[first], columns, arrays)
            merged = builder.add_func(func, first.name_hint)
            made |= {name: (merged, arrays.of_member(at)) for at, name in enumerate(members)}
    main = structural_map(mod["main"], (relax.Call, lambda call: _calling(call, made)))
    after = builder.get()
    after["main"] = main
    return after


def _operands(main: relax.Function) -> dict[Any, int]:
    """How many tensors each function that is called takes."""
    calls = (call for call in collect(main, relax.Call) if op_name(call) == "relax.call_tir")
    return {call.args[0]: len(call.args[1].fields) for call in calls}


def _without_numbers(func: Any) -> tuple[Structure, _Column]:
    """A function's structure, and the numbers that it has, in order."""
    numbers: list[float] = []

    def noted(number: Any) -> Any:
        numbers.append(number.value)
        return tirx.const(1, str(number.ty.dtype))

    body = _numbered(func.body, noted)
    return Structure(normalized(func.with_body(body))), tuple(numbers)


def _numbered(body: Any, use: Callable[[Any], Any]) -> Any:
    """A body with something in place of each number of what it stores, but for these.

    Those of indices say where, and not what. By its number an extreme is known to be none of NaN,
    and a division by a power of two is none.
    """

    def kept(node: Any, mutator: Any) -> Any:
        sides = (one if _is_number(one) else mutator.mutate(one) for one in (node.a, node.b))
        return type(node)(*sides)

    def quotient(node: Any, mutator: Any) -> Any:
        is_power = _is_number(node.b) and abs(math.frexp(node.b.value)[0]) == 0.5
        return tirx.Div(mutator.mutate(node.a), node.b if is_power else mutator.mutate(node.b))

    changes = [
        (tvm.ir.TensorLoad, lambda load, _: load),
        ((tirx.Max, tirx.Min), kept),
        (tirx.Div, quotient),
        ((tirx.FloatImm, tirx.IntImm), lambda one, _: use(one) if _is_number(one) else one),
    ]

    def stored(store: Any) -> Any:
        value = structural_mutate(store.value, changes)
        return tirx.BufferStore(store.buffer, value, store.indices)

    return structural_map(body, (tirx.BufferStore, stored))


def _is_number(value: Any) -> bool:
    """Whether it is a number that may be read; those that equal others of other bits are not."""
    if not isinstance(value, (tirx.FloatImm, tirx.IntImm)):
        return False
    odd = math.isnan(value.value) or math.copysign(1.0, value.value) < value.value == 0
    return str(value.ty.dtype) in _NUMBERS and not odd


@dataclass(frozen=True)
class _Arrays:
    """What programs have in place of numbers: by types, the columns, in order."""

    columns: Mapping[str, Sequence[_Column]]

    @classmethod
    def of(cls, columns: Sequence[_Column]) -> _Arrays | None:
        """Those of the numbers in which they differ; None where they do not."""
        found: dict[str, list[_Column]] = defaultdict(list)
        for column in dict.fromkeys(one for one in columns if len(set(one)) > 1):
            found[_kind(column)].append(column)
        return cls(found) if found else None

    def of_member(self, at: int) -> list[Any]:
        """The constants of a program."""
        arrays = ([column[at] for column in each] for each in self.columns.values())
        kinds = self.columns.keys()
        return [constant_of(np.array(*one)) for one in zip(arrays, kinds, strict=True)]

    def place(self, column: _Column) -> tuple[str, int] | None:
        """The type of the array that has a column, and where; None of one that is not read."""
        for kind, each in self.columns.items():
            if column in each:
                return kind, each.index(column)
        return None


def _kind(column: _Column) -> str:
    """The type of an array with a column."""
    for kind in BYTES:
        limits = np.iinfo(kind)
        if all(limits.min <= one <= limits.max and one == int(one) for one in column):
            return kind
    return "float32" if isinstance(column[0], float) else "int32"


def _reading(func: Any, operands: int, columns: Sequence[_Column], arrays: _Arrays) -> Any:
    """The function with numbers read from arrays, which come before its results."""
    buffers = {
        kind: tirx.decl_buffer([tirx.const(len(each), "int64")], kind, f"of_{kind}", layout=None)
        for kind, each in arrays.columns.items()
    }
    left = iter(columns)

    def read(number: Any) -> Any:
        if (place := arrays.place(next(left))) is None:
            return number
        load = tirx.BufferLoad(buffers[place[0]], [tirx.const(place[1], "int64")])
        kind = str(number.ty.dtype)
        return load if kind == place[0] else tirx.Cast(kind, load)

    given = set(buffers.values())
    body = _numbered(func.body, read)
    body = structural_map(body, (tvm.s_tir.SBlock, lambda block: _with_reads(block, given)))
    params = [*func.params[:operands], *buffers.values(), *func.params[operands:]]
    return tirx.PrimFunc(params, body, func.ret_type, func.attrs)


def _with_reads(block: Any, given: set[Any]) -> Any:
    """A block that says which of these buffers it reads; of others within it, they do."""
    if collect(block.body, tvm.s_tir.SBlock):
        return block
    parts = [part for part in (block.init, block.body) if part is not None]
    loads = [one for part in parts for one in collect(part, tvm.ir.TensorLoad)]
    places = dict.fromkeys(
        (one.source, int(one.indices[0])) for one in loads if one.source in given
    )
    if not places:
        return block
    reads = [*block.reads, *(_element(*place) for place in places)]
    fields = (block.name_hint, block.body, block.init, block.alloc_buffers, block.match_buffers)
    return tvm.s_tir.SBlock(block.iter_vars, reads, block.writes, *fields, block.annotations)


def _element(buffer: Any, at: int) -> Any:
    ends = (tirx.const(one, "int64") for one in (at, 1))
    return tirx.BufferRegion(buffer, [tvm.ir.Range.from_min_extent(*ends)])


def _calling(call: Any, made: Mapping[Any, tuple[Any, list[Any]]]) -> Any:
    """The call of what takes the place of a function, with its numbers."""
    if op_name(call) != "relax.call_tir" or call.args[0] not in made:
        return call
    name, operands, *rest = call.args
    merged, numbers = made[name]
    args = [merged, relax.Tuple([*operands.fields, *numbers]), *rest]
    return relax.Call(call.op, args, call.attrs, call.ty_args)
