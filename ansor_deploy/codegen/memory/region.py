"""Make a kernel work on a tensor that is part of a larger one, with the same loops.

    out[h, w, c] = ..                 out: [56, 56, 64]
    -->
    out[h, w, c + 64] = ..            out: [56, 56, 128]

Schedules are found for tensors that are not part of others. A vector that runs on from one row into
the next would not be contiguous in the larger tensor, so a kernel with such vectors is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..._tvm import collect, shape_of, structural_map, sym, tirx, tvm
from ..blocks import outside


@dataclass(frozen=True)
class Region:
    """The place of a tensor in a larger one of this shape: an offset for each axis."""

    shape: tuple[int, ...]
    offsets: tuple[int, ...]


def in_region(func: tirx.PrimFunc, at: int, part: Region) -> tirx.PrimFunc | None:
    """The scheduled function with its parameter at position `at` in a larger tensor.

    None where it could no longer load or store whole vectors, or does more than load and store.
    """
    own = func.params[at]
    if _is_matched(func, own) or not _stays_on_vectors(func, own, part.shape):
        return None
    dtype, name = str(own.dtype), str(own.name)
    whole = tirx.decl_buffer([tirx.const(n, "int64") for n in part.shape], dtype, name)

    def moved(indices: Any) -> list[Any]:
        return [i + o if o else i for i, o in zip(indices, part.offsets, strict=True)]

    def load(one: Any) -> Any:
        return tirx.BufferLoad(whole, moved(one.indices)) if one.source.same_as(own) else one

    def store(one: Any) -> Any:
        if not one.buffer.same_as(own):
            return one
        return tirx.BufferStore(whole, one.value, moved(one.indices))

    def region(one: Any) -> Any:
        if not one.source.same_as(own):
            return one
        begins = moved([axis.min for axis in one.region])
        axes = zip(begins, one.region, strict=True)
        ranges = [tvm.ir.Range.from_min_extent(begin, axis.extent) for begin, axis in axes]
        return tirx.BufferRegion(whole, ranges)

    kinds = [(tvm.ir.TensorLoad, load), (tirx.BufferStore, store), (tvm.ir.TensorRegion, region)]
    params = [whole if k == at else param for k, param in enumerate(func.params)]
    return tirx.PrimFunc(params, structural_map(func.body, kinds), func.ret_type, func.attrs)


def _is_matched(func: Any, own: Any) -> bool:
    """Whether a block matches a part of the buffer as a buffer of its own."""
    blocks = collect(func.body, tvm.s_tir.SBlock)
    matched = [one.source for block in blocks for one in block.match_buffers]
    return any(region.source.same_as(own) for region in matched)


def _stays_on_vectors(func: Any, own: Any, shape: tuple[int, ...]) -> bool:
    """Whether vectors of the buffer's elements stay contiguous where it has this shape."""
    loops = collect(func.body, tirx.For)
    analyzer = sym.Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, tvm.ir.Range.from_min_extent(loop.min, loop.extent))
    before = shape_of(own)
    for loop in (one for one in loops if one.kind == tirx.ForKind.VECTORIZED):
        for indices in _accesses(loop, own):
            if _step(indices, before, loop, analyzer) and not _step(indices, shape, loop, analyzer):
                return False
    return True


def _accesses(loop: Any, own: Any) -> Iterator[list[Any]]:
    """For each access to a buffer within a loop, its indices in terms of loop variables."""
    for realize in collect(loop.body, tvm.s_tir.SBlockRealize):
        for one in collect(realize.block.body, tvm.ir.TensorLoad, tirx.BufferStore):
            if (one.buffer if isinstance(one, tirx.BufferStore) else one.source).same_as(own):
                yield [outside(index, realize) for index in one.indices]


def _step(indices: list[Any], shape: tuple[int, ...], loop: Any, analyzer: Any) -> bool:
    """Whether all lanes are the same element, or adjacent ones, in a tensor of this shape."""
    flat: Any = tirx.const(0, "int64")
    for index, extent in zip(indices, shape, strict=True):
        flat = flat * extent + index
    var = loop.loop_var
    first = structural_map(flat, (tirx.Var, lambda one: loop.min if one.same_as(var) else one))
    step = analyzer.simplify(flat - first)
    return any(analyzer.can_prove_equal(step, value) for value in (tirx.const(0, "int64"), var))
