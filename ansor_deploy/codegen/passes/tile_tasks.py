"""Make all tiles of a result tasks of one parallel loop, whole tiles and cut-off ones.

    parallel p in 4 (marked): parallel r in 6 (marked): tile(p, r)
    -->
    parallel t in 24:
        if t < 15: tile(t / 5, t % 5)
        elif t < 18: tile(t - 15, 5)
        elif t < 23: tile(3, t - 18)
        else: tile(3, 5)

TVM cannot fuse a loop that is to be partitioned with another, and runs the rest that it cuts off a
parallel loop on one core. Here whole tiles and those that an extent cuts short are tasks of one
loop. Each kind has its own code, which never checks where the extent ends.
"""

import math
from itertools import product
from typing import Any

from ..._tvm import collect, structural_map, substituted, tirx
from ...marks.partition import PARTITION


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Tasks")
def tasks(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with each nest of parallel loops as one. Its blocks are lowered already."""
    found = structural_map(func.body, ((tirx.AttrStmt, tirx.For), _joined), order="pre")
    return func.with_body(found)


def nests(body: Any) -> list[list[Any]]:
    """The nests of parallel loops that become one loop each; in a nest, the outermost first."""
    parallel = [one for one in collect(body, tirx.For) if one.kind == tirx.ForKind.PARALLEL]
    found: list[list[Any]] = []
    for loop in reversed(parallel):  # an outer loop before those inside it
        if not any(loop.same_as(one) for nest in found for one in nest):
            within = collect(loop.body, tirx.For)
            inner = [one for one in parallel if any(one.same_as(other) for other in within)]
            found.append([loop, *inner[::-1]])
    return found


def _joined(stmt: Any) -> Any:
    """A nest of parallel loops as one loop; other statements as they are."""
    loops, body = _nest(stmt)
    if len(loops) < 2 and not any(cut for _, cut in loops):
        return stmt
    outermost, _ = loops[0]
    task = tirx.Var("task", outermost.loop_var.ty.dtype)
    kinds = list(product(*map(_parts, loops)))
    count = sum(map(_size, kinds))
    end, chosen = count, None
    for kind in reversed(kinds):
        tile = _tile(body, loops, kind, task - (end - _size(kind)))
        chosen = tile if chosen is None else tirx.IfThenElse(task < end, tile, chosen)
        end -= _size(kind)
    return tirx.For(task, 0, count, tirx.ForKind.PARALLEL, chosen)


def _nest(stmt: Any) -> tuple[list[tuple[Any, bool]], Any]:
    """The nest of parallel loops that begins here, each with whether it is cut; and its body."""
    cut = isinstance(stmt, tirx.AttrStmt) and stmt.attr_key == PARTITION
    loop = stmt.body if cut else stmt
    if not isinstance(loop, tirx.For) or loop.kind != tirx.ForKind.PARALLEL:
        return [], stmt
    inner, body = _nest(loop.body)
    return [(loop, cut), *inner], body


def _parts(loop: tuple[Any, bool]) -> list[tuple[int, int]]:
    """A loop's iterations as (first, how many): all, or the whole ones and the one cut short."""
    node, cut = loop
    count = int(node.extent)
    return [(0, count - 1), (count - 1, 1)] if cut else [(0, count)]


def _size(kind: tuple[tuple[int, int], ...]) -> int:
    """The number of tiles of a kind. A kind is one part of each loop."""
    return math.prod(count for _, count in kind)


def _tile(body: Any, loops: list[Any], kind: tuple[tuple[int, int], ...], number: Any) -> Any:
    """The body of the task with this number, which counts the tasks of its kind."""
    places = []
    for (loop, _), (first, count) in zip(reversed(loops), reversed(kind), strict=True):
        places.append((loop.loop_var, first + number % count))
        number = number // count
    return substituted(body, places)
