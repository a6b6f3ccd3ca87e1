"""Compute tiles in which few rows count as small tiles, each with its own accumulators.

    for r in 86: if 6 r < n: tile of 6 rows at 6 r
    -->
    for r in 86: if 6 r < n:
        if n <= 6 r + 1: tile of 1 row at 6 r
        elif n <= 6 r + 4: for s in 2: if 6 r + 2 s < n: tile of 2 rows at 6 r + 2 s
        else: tile of 6 rows at 6 r

The rows of a tile are unrolled, so a tile with one row that counts costs as much as a whole one. A
third of a tile's accumulators is the least that keeps the processor's multipliers busy. One row
alone keeps them busy where it has several vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm

_SHARE = 3  # a small tile has at most this part (1/3) of a tile's rows
_FEWEST = 3  # tiles with fewer rows have no small tiles
_BUSY = 4  # vectors of a row, if that row alone is to be a tile

Own = Mapping[Any, Any]  # buffers that only a tile uses, each with that of its small tiles


@dataclass(frozen=True)
class Rows:
    """The unrolled rows of a tile. first: the first row. loops: each block's loop over the rows."""

    first: Any
    loops: Sequence[Any]

    @classmethod
    def of(cls, first: Any, rests: Sequence[Any], loops: Sequence[Sequence[Any]]) -> Rows | None:
        """The rows of a tile's blocks; None where these have no common unrolled loop over rows.

        rests: each block's row minus the first one; None where the block sums along rows. loops:
        those around each block.
        """
        found = [
            next((one for one in around if rest is not None and one.loop_var.same_as(rest)), None)
            for rest, around in zip(rests, loops, strict=True)
        ]
        rows = [one for one in found if one is not None]
        kinds = {(one.kind, int(one.extent)) for one in rows}
        if len(rows) < len(found) or len(kinds) != 1:
            return None
        ((kind, count),) = kinds
        return cls(first, rows) if kind == tirx.ForKind.UNROLLED and count >= _FEWEST else None

    @property
    def small(self) -> list[tuple[int, int]]:
        """The rows of small tiles, and how many of these at most are computed in place of one tile.

        More of them would cost as much as the whole tile. The smallest come first.
        """
        whole = int(self.loops[0].extent)
        size = 1 << (whole // _SHARE).bit_length() - 1
        alone = [(1, 1)] if size > 1 and min(map(_vectors, self.loops)) >= _BUSY else []
        return [*alone, (size, 2 * whole // (_SHARE * size))]


def _vectors(rows: Any) -> int:
    """How many vectors a row of an unrolled tile has."""
    unrolled = (one for one in collect(rows.body, tirx.For) if one.kind == tirx.ForKind.UNROLLED)
    return prod(int(one.extent) for one in unrolled)


def in_small_tiles(body: Any, rows: Rows, end: Any, own: Sequence[Own]) -> Any:
    """The body of a tile, with small tiles where few of its rows count.

    end: rows below this count. own: for each size of small tiles, the buffers that they use.
    """
    made = body
    for (size, most), buffers in reversed(list(zip(rows.small, own, strict=True))):
        part = tirx.Var("part", str(rows.loops[0].loop_var.ty.dtype))
        copy = _copied(body, rows, part * size, size, buffers)
        tile = tirx.IfThenElse(rows.first + part * size < end, copy, None)
        small = tirx.For(part, 0, most, tirx.ForKind.SERIAL, tile)
        made = tirx.IfThenElse(end <= rows.first + size * most, small, made)
    return made


def own_buffers(root: Any, body: Any, rows: Rows) -> list[Own]:
    """The buffers of a function that only this part of it uses, each with a copy.

    There is a copy for each size of small tiles.
    """
    blocks = collect(root, tvm.s_tir.SBlock)
    made = [buffer for block in blocks for buffer in block.alloc_buffers]
    everywhere, here = map(accessed, (root, body))
    alone = [one for one in made if 0 < here.count(one) == everywhere.count(one)]
    return [{one: _like(one, size) for one in alone} for size, _ in rows.small]


def _like(buffer: Any, rows: int) -> Any:
    words = (buffer.shape, str(buffer.dtype), f"{buffer.name}_of_{rows}")
    return tirx.decl_buffer(*words, scope=buffer.scope())


def allocated(root: Any, buffers: Sequence[Any]) -> Any:
    """A function's body that allocates these buffers as well."""
    return with_buffers(root, [*root.block.alloc_buffers, *buffers])


def with_buffers(root: Any, buffers: Sequence[Any]) -> Any:
    """A function's body that allocates these buffers instead of its own."""
    one = root.block
    fields = (one.iter_vars, one.reads, one.writes, one.name_hint, one.body, one.init)
    block = tvm.s_tir.SBlock(*fields, buffers, one.match_buffers, one.annotations)
    return tvm.s_tir.SBlockRealize(root.iter_values, root.predicate, block)


def accessed(stmt: Any) -> list[Any]:
    """The buffer of each load and store of a statement."""
    found = collect(stmt, tvm.ir.TensorLoad, tirx.BufferStore)
    return [one.buffer if isinstance(one, tirx.BufferStore) else one.source for one in found]


def _copied(body: Any, rows: Rows, more: Any, size: int, own: Own) -> Any:
    """A copy of a tile with so many rows, from row `more` on, with own variables and buffers."""

    def loop(one: Any) -> Any:
        var = one.loop_var
        if not any(var.same_as(other.loop_var) for other in rows.loops):
            return one
        put = lambda other: more + var if other.same_as(var) else other  # noqa: E731
        moved = structural_map(one.body, (tirx.Var, put))
        kept = (one.thread_binding, one.annotations, one.step, one.span)
        return tirx.For(var, one.min, size, one.kind, moved, *kept)

    short = structural_map(body, (tirx.For, loop))
    renamed = {**own, **_renamed(short)}
    return structural_map(short, (tirx.Var, lambda one: renamed.get(one, one)))


def _renamed(body: Any) -> dict[Any, Any]:
    """New variables for all loops and blocks, since each variable may be bound only once."""
    loops = [one.loop_var for one in collect(body, tirx.For)]
    axes = [axis.var for one in collect(body, tvm.s_tir.SBlock) for axis in one.iter_vars]
    return {var: tirx.Var(var.name, str(var.ty.dtype)) for var in (*loops, *axes)}
