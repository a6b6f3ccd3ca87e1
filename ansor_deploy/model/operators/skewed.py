"""An operator of our own, in no file: a part of each row that begins earlier from row to row.

y = Skewed(x)    y[.., i, j, ..] = x[.., i, begin - by * i + j, ..]

Scores of relative positions are shifted like that. In a range, `begin` and how many columns of x
count are further inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._lazy_tvm import tirx, tvm
from ..graph.graph import OWN
from .converting import Call
from .emitter import Emitter
from .operator import Operator

# TVM's pattern (`op_pattern`) of what is fused with others; it finds none for computed places.
_INJECTIVE = 2


def skew(
    emit: Emitter, data: str, axis: int, by: int, columns: int, begin: int | Sequence[str]
) -> str:
    """A part of each row of a tensor.

    axis: of the rows; their columns are along the next one. by: by how much each row begins before
    the last one. columns: of the result. begin: where the first row does; with how many columns of
    the data count, if runs decide both.
    """
    shape = list(emit.shape(data))
    shape[axis + 1] = columns
    words: dict[str, Any] = {"axis": axis, "by": by, "columns": columns}
    given = [data]
    if isinstance(begin, int):
        words["begin"] = begin
    else:
        given += begin
    return emit.own("Skewed", given, emit.dtype(data), tuple(shape), **words)


def converted(call: Call) -> Any:
    """The operator as a function in TE."""
    data, *numbers = call.inputs
    given = [call.attribute(name) for name in ("axis", "by", "columns", "begin")]
    words = {"primfunc_name_hint": "skewed", "primfunc_attrs": {"op_pattern": _INJECTIVE}}
    return call.emit(call.bb.call_te(_skewed, data, numbers, *given, **words))


def _skewed(
    data: Any, numbers: Sequence[Any], axis: int, by: int, columns: int, begin: int | None
) -> Any:
    """Skewed, in TE."""

    def element(*place: Any) -> Any:
        row, column = (tirx.Cast("int64", one) for one in place[axis : axis + 2])

        def read(at: Any) -> Any:
            return data[tuple(at if k == axis + 1 else one for k, one in enumerate(place))]

        if begin is not None:
            return read(begin - row * by + column)
        first, count = (number() for number in numbers)
        # Capped for rows that do not count.
        cap = tirx.const(int(data.shape[axis + 1]) - columns, "int64")
        at = tirx.Min(tirx.Max(first - row * by, tirx.const(0, "int64")), cap) + column
        # The condition says how much is read, and holds wherever a result counts.
        return tirx.Select(at < count, read(at), tirx.const(0, data.dtype))

    shape = [columns if at == axis + 1 else n for at, n in enumerate(data.shape)]
    return tvm.te.compute(shape, element, name="skewed")


OPERATORS = (Operator("Skewed", OWN, convert=converted),)
