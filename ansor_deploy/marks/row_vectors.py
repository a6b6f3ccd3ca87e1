"""Elements of rows that vectors are multiplied by: four contiguous ones are loaded as one vector.

    for k in range(4) (marked, unrolled): acc[..] += a[i + k] * p[k, ..]    a[i + k] for all lanes
    -->
    row = a[i .. i + 3] (a vector)
    acc[..] += row[0] * p[0, ..]                                            row[0] for all lanes
    acc[..] += row[1] * p[1, ..] and so on

ARM's multiply-add can use one lane of a register for all lanes, so a load serves four steps. For
16-bit integers the same instruction also widens (`smlal`). x86's multiply-add takes an element from
memory for all lanes: there the loop stays as it is.
"""

from __future__ import annotations

from typing import Any

from .._lazy_tvm import at_step, collect, op_name, structural_map, tirx, tvm, uses
from ..system.checks import flag
from ..system.host import architecture
from . import Mark, Place

# Annotation of an unrolled loop over steps of a reduction.
ROW_VECTORS = "ansor.row_vectors"
# Elements of a row in a register; ARM's multiply-add takes one of them.
ROW_LANES = 4
# Without this option LLVM loads the vectors of rows for eight steps together, instead of four.
_ROW_BY_ROW = ("-misched-cluster:bool=false",)


def reading_vectors(sch: Any, loop: Any) -> None:
    """Let the unrolled steps of a reduction read four elements of a row at a time."""
    sch.annotate(loop, ROW_VECTORS, True)


def row_vectors(func: Any) -> Any:
    """The function with its marked loops unrolled. Loops over lanes must be vectors already."""
    triple = func.attrs["target"].attrs.get("mtriple")
    if not triple or architecture(str(triple)) != "aarch64":
        return func
    return func.with_body(structural_map(func.body, (tirx.For, _written_out)))


def _written_out(loop: Any) -> Any:
    if ROW_VECTORS not in (loop.annotations or {}):
        return loop
    steps, inside = getattr(loop.extent, "value", 0), collect(loop.body, tirx.For)
    written_out = all(one.kind == tirx.ForKind.UNROLLED for one in [loop, *inside])
    if steps % ROW_LANES or not written_out or _chooses(loop):
        return loop
    rows = _rows(loop)

    def at(step: int) -> Any:
        body = structural_map(loop.body, (tirx.Broadcast, lambda one: _lane(one, rows, step)))
        return at_step(body, loop, step)

    return tirx.SeqStmt([at(step) for step in range(steps)])


def _chooses(loop: Any) -> bool:
    """Whether conditions may let some steps read and others not."""
    calls = [one for one in collect(loop.body, tvm.ir.Call) if one.args]
    found = [one.condition for one in collect(loop.body, tirx.IfThenElse)]
    found += [one.args[0] for one in calls if op_name(one) == "prim.if_then_else"]
    return any(uses(condition, loop.loop_var) for condition in found)


def _rows(loop: Any) -> list[Any]:
    """The loads whose elements are contiguous from step to step, and never written in the loop."""
    written = [store.buffer.data for store in collect(loop.body, tirx.BufferStore)]
    loads = [_read(one.value) for one in collect(loop.body, tirx.Broadcast)]
    loads = [one for one in loads if isinstance(one, tvm.ir.TensorLoad) and len(one.indices) == 1]
    loads = [one for one in loads if str(one.ty.dtype) in ("float32", "int16")]
    loads = [one for one in loads if not any(one.source.data.same_as(data) for data in written)]
    return [one for one in loads if steps_by_one(one.indices[0], loop.loop_var)]


def _read(element: Any) -> Any:
    """The load of an element, without the cast that widens it."""
    return element.value if isinstance(element, tirx.Cast) else element


def steps_by_one(index: Any, var: Any) -> bool:
    """Whether an index grows by one when a variable does."""
    ahead = structural_map(index, (tirx.Var, lambda v: v + 1 if v.same_as(var) else v))
    step = tvm.sym.Analyzer().simplify(ahead - index)
    return isinstance(step, tirx.IntImm) and int(step.value) == 1


def _lane(one: Any, rows: list[Any], step: int) -> Any:
    """A broadcast element at a step, as a lane of its row's vector; others stay as they are."""
    load = _read(one.value)
    if not any(load.same_as(each) for each in rows):
        return one
    (index,) = load.indices
    lane = step % ROW_LANES
    row = tirx.Ramp(index - lane, tirx.const(1, index.ty.dtype), ROW_LANES)
    vector = tirx.BufferLoad(load.source, [row])
    lanes = tirx.Shuffle([vector], [tirx.IntImm("int32", lane)] * int(one.lanes))
    return lanes if one.value.same_as(load) else tirx.Cast(str(one.ty.dtype), lanes)


MARK = Mark(
    {ROW_VECTORS: flag},
    Place.VECTORS,
    row_vectors,
    _ROW_BY_ROW,
    verbs=("ROW_LANES", "reading_vectors"),
)
