"""Pack the pixels that count into adjacent rows of tiles, where rows are lines and columns.

    for r in 45: tile of 9 rows at 9 r, each at [k / 20, k % 20]         h, w of 20, 20 count
    -->
    for r in 45: if 9 r < h w: tile of 9 rows at 9 r, each at [k / w, k % w]

Otherwise a tile would be computed where any of its rows counts, and lines of an image begin and end
within tiles. Rows of the last tile beyond the last row that counts repeat that row. The function's
own buffers that have an axis of such rows hold them in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

from ..._tvm import collect, structural_equal, structural_map, substituted, tirx, tvm, uses
from ..blocks import Leaf, leaves, outside
from .asked import QUOTIENTS, RESTS, Limits, is_quotient, part_of
from .places import Ends, Numbers, Places
from .small_tiles import accessed, allocated, with_buffers


@dataclass(frozen=True)
class _Tile:
    """A block of a tile of such rows.

    row: its axis of rows. buffers: the buffers that have such rows, and the axis of each. outer:
    the loops over tiles. rows: the unrolled loop over the rows of a tile. body: its body, with
    `number` for the number of a row's pixel in a dense image.
    """

    leaf: Leaf
    row: Any
    places: Places
    buffers: Sequence[tuple[Any, int]]
    outer: Sequence[Any]
    rows: Any
    body: Any
    number: Any

    @classmethod
    def of(cls, leaf: Leaf, limits: Limits, own: set[Any]) -> _Tile | None:
        """A block as one of such tiles, or None. own: the buffers that the function allocates."""
        for (row, width), columns in limits.items():
            lines, loops = limits.get((row, 0)), _tiled(row, leaf)
            if not width or loops is None:
                continue
            (extent,) = (
                int(one.dom.extent) for one in leaf.block.iter_vars if one.var.same_as(row)
            )
            body = leaf.block.body
            alone = list(_alone(body, row))
            if extent % width == 0 and _is_all(body, row, width, alone, own):
                high = lines.divided(width) if lines else None
                places = Places(extent // width, width, high, columns)
                number = tirx.Var("number", str(row.ty.dtype))
                buffers = list(dict.fromkeys(alone))
                return cls(leaf, row, places, buffers, *loops, body, number)
        return None

    @property
    def loop(self) -> Any:
        """The innermost loop over tiles."""
        return self.outer[-1]

    @property
    def asks(self) -> bool:
        """Whether the block uses the line or the column of a row."""
        parts = collect(self.body, *QUOTIENTS, *RESTS)
        return any(_is_part(one, self.row, self.places.width) for one in parts)

    def at(self, step: Any) -> Any:
        """The row at a step of the loop over a tile's rows."""
        put = lambda one: step if one.same_as(self.rows.loop_var) else one  # noqa: E731
        return structural_map(outside(self.row, self.leaf.realize), (tirx.Var, put))


class _Found(NamedTuple):
    """Two buffers with the lines and the columns of a tile's rows, and the loops that fill them."""

    buffers: tuple[Any, Any]
    filled: tuple[Any, Any]

    @classmethod
    def of(cls, tile: _Tile, places: Places, numbers: Numbers) -> _Found:
        """The buffers for a tile's rows."""
        count = int(tile.rows.extent)
        zero, *shape = (tirx.const(n, "int64") for n in (0, places.height * places.width + count))
        lines, columns = (tirx.decl_buffer(shape, "int64", name) for name in ("lines", "columns"))

        def stored(buffer: Any, which: int) -> Any:
            step, row = (tirx.Var(name, "int64") for name in ("step", "row"))
            axis = tirx.IterVar(tvm.ir.Range(zero, shape[0]), row, tirx.IterVar.DataPar)
            store = tirx.BufferStore(buffer, places.of(row, numbers)[which], [row])
            block = tvm.s_tir.SBlock([axis], [], [], buffer.name, store)
            once = tvm.s_tir.SBlockRealize([tile.at(step)], True, block)
            return tirx.For(step, zero, tile.rows.extent, tirx.ForKind.UNROLLED, once)

        return cls((lines, columns), (stored(lines, 0), stored(columns, 1)))


def packed(
    body: Any, found: Sequence[Leaf], limits: Sequence[Limits], numbers: Numbers
) -> tuple[Any, Sequence[Leaf], Sequence[Ends]]:
    """A function's body with packed rows, its leaves, and the limits of the axes of each.

    All are unchanged where there are no such rows, or where other blocks in their loops, or sums of
    rows, would not fit the new order.
    """
    own = {one for block in collect(body, tvm.s_tir.SBlock) for one in block.alloc_buffers}
    pairs = zip(found, limits, strict=True)
    tiles = {one.leaf.block: one for one in (_Tile.of(*pair, own) for pair in pairs) if one}
    moved = {pair for tile in tiles.values() for pair in tile.buffers}
    others = [leaf for leaf in found if leaf.block not in tiles]
    mixed = any(_is_mixed(leaf, list(tiles.values()), moved) for leaf in others)
    if mixed or not _are_alike(list(tiles.values())):
        return body, found, limits
    places = reduce(Places.or_more, (tile.places for tile in tiles.values()))
    pitch = places.pitch(numbers)
    tiles = {at: replace(one, body=_numbered(one, pitch)) for at, one in tiles.items()}
    rows = {one.loop.loop_var: one for one in tiles.values() if one.asks}
    lie = {loop: _Found.of(one, places, numbers) for loop, one in rows.items()}
    last = places.expression(numbers) - 1 if any(map(_is_repeated, tiles.values())) else None
    made = {at: _rows(one, lie.get(one.loop.loop_var), last) for at, one in tiles.items()}
    apart = (leaf for leaf in others if set(dict(moved)).intersection(accessed(leaf.block.body)))
    made |= {leaf.block: _moved(leaf, moved, places, numbers) for leaf in apart}
    changed = structural_map(body, (tvm.s_tir.SBlock, lambda one: _with_body(one, made)))
    changed = structural_map(changed, (tirx.For, lambda one: _filled(one, lie)))
    new = [one for place in lie.values() for one in place.buffers]
    changed = _apart(allocated(changed, new), moved)
    after, ends = list(leaves(changed)), _ends(limits, tiles, places)
    return changed, after, [_limits(leaf, ends, dict.fromkeys(new, places)) for leaf in after]


def _are_alike(tiles: Sequence[_Tile]) -> bool:
    """Whether all tiles are of one image size, and tiles of a loop have the same rows."""
    first = {tile.loop.loop_var: tile for tile in tiles}
    zero = tirx.const(0, "int64")
    return len({(tile.places.height, tile.places.width) for tile in tiles}) == 1 and all(
        int(tile.rows.extent) == int(other.rows.extent)
        and structural_equal(tile.at(zero), other.at(zero))
        for tile, other in ((tile, first[tile.loop.loop_var]) for tile in tiles)
    )


def _filled(loop: Any, lie: Mapping[Any, _Found]) -> Any:
    """A loop over tiles that first computes the lines and columns of each tile's rows."""
    if loop.loop_var not in lie:
        return loop
    inside = tirx.SeqStmt([*lie[loop.loop_var].filled, loop.body])
    kept = (loop.thread_binding, loop.annotations, loop.step, loop.span)
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, inside, *kept)


def _apart(root: Any, moved: set[tuple[Any, int]]) -> Any:
    """A function's body whose buffers of several planes have an odd number of rows in each plane.

    Transforms touch one element of each plane: if planes were a multiple of 4 KiB apart, all of
    these would fall into the same set of the first-level cache.
    """
    odd = {buffer: _with_odd(buffer, axis) for buffer, axis in moved if axis and axis > 1}
    mapped = structural_map(root, (tirx.Var, lambda one: odd.get(one, one)))
    return with_buffers(mapped, [odd.get(buffer, buffer) for buffer in root.block.alloc_buffers])


def _with_odd(buffer: Any, axis: int) -> Any:
    shape = [n if at != axis else int(n) | 1 for at, n in enumerate(buffer.shape)]
    return tirx.decl_buffer(shape, str(buffer.dtype), buffer.name, scope=buffer.scope())


def _ends(limits: Sequence[Limits], tiles: Mapping[Any, _Tile], places: Places) -> Ends:
    """The limits of all axes. Those of packed rows are the places that count."""
    rows = {tile.row for tile in tiles.values()}
    every = {key: one for limit in limits for key, one in limit.items()}
    kept = {key: one for key, one in every.items() if key[0] not in rows}
    return {**kept, **{(row, 0): places for row in rows}}


def _limits(leaf: Leaf, ends: Ends, new: Mapping[Any, Places]) -> Ends:
    """The limits of a block's axes. new: the limit of the axis that fills each new buffer."""
    own = [axis.var for axis in leaf.block.iter_vars]
    if leaf.block.body.buffer in new:
        return {(own[0], 0): new[leaf.block.body.buffer]}
    return {key: one for key, one in ends.items() if any(key[0].same_as(var) for var in own)}


def _tiled(row: Any, leaf: Leaf) -> tuple[Sequence[Any], Any] | None:
    """The loops over tiles and the unrolled loop over a tile's rows; None if a row has others."""
    at = outside(row, leaf.realize)
    *outer, inner = [one for one in leaf.loops if uses(at, one.loop_var)] or [None]
    whole = all(one.kind in (tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL) for one in outer)
    rows = outer and inner.kind == tirx.ForKind.UNROLLED and leaf.block.init is None
    return (outer, inner) if rows and whole else None


def _numbered(tile: _Tile, pitch: Any) -> Any:
    """A tile's body that uses the numbers of its rows' pixels in dense images of this pitch.

    Rows behind the last pixel that counts have numbers of pixels that do not count. So a block that
    reads indices from memory does without.
    """
    body, width = tile.leaf.block.body, tile.places.width
    loads = collect(body, tvm.ir.TensorLoad)
    inner = [one for load in loads for at in load.indices for one in collect(at, tvm.ir.TensorLoad)]
    if any(one.indices for one in inner):
        return body

    def added(one: Any) -> Any:
        line, column = one.a, one.b
        if not isinstance(line, tirx.Mul) or not structural_equal(line.b, pitch):
            return one
        lines = is_quotient(line.a) and _is_part(line.a, tile.row, width)
        columns = not is_quotient(column) and _is_part(column, tile.row, width)
        return tile.number if lines and columns else one

    def selected(one: Any) -> Any:
        return tile.number if one.true_value.same_as(tile.number) else one

    return structural_map(structural_map(body, (tirx.Add, added)), (tirx.Select, selected))


def _is_all(
    body: Any, row: Any, width: int, alone: Sequence[tuple[Any, int]], own: set[Any]
) -> bool:
    """Whether a block uses a row only by its line and column, or as an index of own buffers."""
    zero = tirx.const(0, str(row.ty.dtype))
    put = lambda one: zero if _is_part(one, row, width) else one  # noqa: E731
    rest = structural_map(body, ((*QUOTIENTS, *RESTS), put))
    left = sum(one.same_as(row) for one in collect(rest, tirx.Var))
    return left == len(alone) and all(buffer in own for buffer, _ in alone)


def _alone(store: Any, row: Any) -> Iterator[tuple[Any, int]]:
    """The buffers that are indexed by the row itself, and along which axis."""
    loads = ((one.source, one.indices) for one in collect(store.value, tvm.ir.TensorLoad))
    for buffer, indices in ((store.buffer, store.indices), *loads):
        for axis, index in enumerate(indices):
            if index.same_as(row):
                yield buffer, axis


def _is_part(one: Any, row: Any, width: int) -> bool:
    part = part_of(one)
    return part is not None and part[0].same_as(row) and part[1] == width


def _is_mixed(leaf: Leaf, tiles: Sequence[_Tile], moved: set[tuple[Any, int]]) -> bool:
    """Whether a block, no such tile, is in a loop over tiles, or initialises their sum."""
    loops = [loop for tile in tiles for loop in tile.outer]
    within = any(one.same_as(loop) for one in leaf.loops for loop in loops)
    return within or (leaf.block.init is not None and leaf.block.body.buffer in dict(moved))


def _is_repeated(tile: _Tile) -> bool:
    """Whether a tile's block stores rows behind the last one that counts where that one is."""
    places = (one for at in tile.body.indices for one in collect(at, *QUOTIENTS, *RESTS))
    return any(_is_part(one, tile.row, tile.places.width) for one in places)


def _rows(tile: _Tile, lie: _Found | None, last: Any | None) -> Any:
    """The body of a tile's block for packed rows.

    lie: their lines and columns, if it uses them. last: the last pixel's number, if rows behind it
    are to repeat it.
    """

    def part(one: Any) -> Any:
        if lie is None or not _is_part(one, tile.row, tile.places.width):
            return one
        return tirx.BufferLoad(lie.buffers[0 if is_quotient(one) else 1], [tile.row])

    found = structural_map(tile.body, ((*QUOTIENTS, *RESTS), part))
    number = tile.row if last is None else tirx.Min(tile.row, last)
    return substituted(found, [(tile.number, number)])


def _moved(leaf: Leaf, moved: set[tuple[Any, int]], places: Places, numbers: Numbers) -> Any:
    """The body of another block that accesses buffers of packed rows.

    It stores places that do not count at the last row.
    """

    def indices(buffer: Any, own: Sequence[Any], *, stored: bool) -> list[Any]:
        made = list(own)
        for axis in (axis for other, axis in moved if other.same_as(buffer)):
            line, column = made[axis] // places.width, made[axis] % places.width
            made[axis] = places.slot(line, column, numbers, stored=stored)
        return made

    def load(one: Any) -> Any:
        if not any(buffer.same_as(one.source) for buffer, _ in moved):
            return one
        return tirx.BufferLoad(one.source, indices(one.source, one.indices, stored=False))

    store = leaf.block.body
    value = structural_map(store.value, (tvm.ir.TensorLoad, load))
    return tirx.BufferStore(store.buffer, value, indices(store.buffer, store.indices, stored=True))


def _with_body(block: Any, bodies: Mapping[Any, Any]) -> Any:
    if block not in bodies:
        return block
    fields = (block.iter_vars, block.reads, block.writes, block.name_hint, bodies[block])
    return tvm.s_tir.SBlock(
        *fields, block.init, block.alloc_buffers, block.match_buffers, block.annotations
    )
