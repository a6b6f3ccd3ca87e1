"""Make one program of those that differ only in numbers; it reads these as inputs.

    y = uint8(round(float32(int32(x) - 131) * 0.25) + 7)       and the same with 128, 0.5 and 9
    -->
    y = uint8(round(float32(int32(x) - int32(b[0])) * f[0]) + float32(b[1]))

Each layer of a quantised network has its own scales and zero points, so twelve equal layers would
be twelve tasks to tune and twelve kernels to compile. Numbers that are equal in all programs stay
where they are. A number that fits a byte is read as one, since that shows that it is an integer and
small (`codegen/passes/rounding.py`).
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

_NUMBERS = ("float32", "int32", "int16")  # an int16 is read as int32 if it fits no byte
_Column = tuple[float, ...]  # the number at one place, for each of several programs


def merged_alike(mod: tvm.IRModule) -> tvm.IRModule:
    """The fused module, with one function for all that differ only in numbers."""
    operands = _operands(mod["main"])
    groups: dict[Structure, dict[Any, _Column]] = defaultdict(dict)
    for name in operands:
        shape, numbers = _without_numbers(mod[name])
        groups[shape][name] = numbers
    builder = relax.BlockBuilder(mod)
    # For each function: the one that replaces it, and the numbers to pass.
    made: dict[Any, tuple[Any, list[Any]]] = {}
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
    """How many tensors each called function takes."""
    calls = (call for call in collect(main, relax.Call) if op_name(call) == "relax.call_tir")
    return {call.args[0]: len(call.args[1].fields) for call in calls}


def _without_numbers(func: Any) -> tuple[Structure, _Column]:
    """A function's structure, and its numbers in order."""
    numbers: list[float] = []

    def noted(number: Any) -> Any:
        numbers.append(number.value)
        return tirx.const(1, str(number.ty.dtype))

    body = _numbered(func.body, noted)
    return Structure(normalized(func.with_body(body))), tuple(numbers)


def _numbered(body: Any, use: Callable[[Any], Any]) -> Any:
    """Replace each number in the values that a body stores, with three exceptions.

    Numbers in indices stay: they say where to read, not what to compute. So do the operand of a
    maximum or minimum, which must be seen not to be NaN, and a division by a power of two, which
    becomes a product.
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
    """Whether it is a number that may be read; NaN and -0.0 are not, as comparing ignores bits."""
    if not isinstance(value, (tirx.FloatImm, tirx.IntImm)):
        return False
    odd = math.isnan(value.value) or math.copysign(1.0, value.value) < value.value == 0
    return str(value.ty.dtype) in _NUMBERS and not odd


@dataclass(frozen=True)
class _Arrays:
    """The arrays that replace numbers: for each type, the columns in it, in order."""

    columns: Mapping[str, Sequence[_Column]]

    @classmethod
    def of(cls, columns: Sequence[_Column]) -> _Arrays | None:
        """The arrays for the columns whose numbers differ; None if there are none."""
        found: dict[str, list[_Column]] = defaultdict(list)
        for column in dict.fromkeys(one for one in columns if len(set(one)) > 1):
            found[_kind(column)].append(column)
        return cls(found) if found else None

    def of_member(self, at: int) -> list[Any]:
        """The constants to pass for the program at a place."""
        arrays = ([column[at] for column in each] for each in self.columns.values())
        kinds = self.columns.keys()
        return [constant_of(np.array(*one)) for one in zip(arrays, kinds, strict=True)]

    def place(self, column: _Column) -> tuple[str, int] | None:
        """The type of the array with a column, and the place there; None if it is not read."""
        for kind, each in self.columns.items():
            if column in each:
                return kind, each.index(column)
        return None


def _kind(column: _Column) -> str:
    """The type of the array that holds a column."""
    for kind in BYTES:
        limits = np.iinfo(kind)
        if all(limits.min <= one <= limits.max and one == int(one) for one in column):
            return kind
    return "float32" if isinstance(column[0], float) else "int32"


def _reading(func: Any, operands: int, columns: Sequence[_Column], arrays: _Arrays) -> Any:
    """The function with numbers read from arrays, which are parameters before its results."""
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
    """An innermost block that declares which elements of the buffers it reads; others unchanged."""
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
    """The call of the function that replaces another, with its numbers."""
    if op_name(call) != "relax.call_tir" or call.args[0] not in made:
        return call
    name, operands, *rest = call.args
    merged, numbers = made[name]
    args = [merged, relax.Tuple([*operands.fields, *numbers]), *rest]
    return relax.Call(call.op, args, call.attrs, call.ty_args)
