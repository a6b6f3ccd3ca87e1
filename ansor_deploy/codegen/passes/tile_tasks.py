"""Make all tiles of a result tasks of one parallel loop, whole tiles and cut-off ones.

    parallel p in 4 (marked): parallel r in 6 (marked): tile(p, r)
    -->
    parallel t in 24:
        if t / 6 < 3: if t % 6 < 5: tile(t / 6, t % 6) else: tile(t / 6, 5)
        else: if t % 6 < 5: tile(3, t % 6) else: tile(3, 5)

TVM cannot fuse a loop that is to be partitioned with another, and runs the rest that it cuts off a
parallel loop on one core. Here whole tiles and those that an extent cuts short are tasks of one
loop. Each kind has its own code, which never checks where the extent ends. The tasks are in the
loops' order, whole or not: so each core gets tiles of both kinds, and neighbours in memory.
"""

import math
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
    count = math.prod(int(loop.extent) for loop, _ in loops)
    return tirx.For(task, 0, count, tirx.ForKind.PARALLEL, _tile(body, _places(loops, task)))


def _nest(stmt: Any) -> tuple[list[tuple[Any, bool]], Any]:
    """The nest of parallel loops that begins here, each with whether it is cut; and its body.

    What a loop asks before it begins the next one, each task asks.
    """
    if isinstance(stmt, tirx.IfThenElse) and stmt.else_case is None:
        inner, body = _nest(stmt.then_case)
        return (inner, tirx.IfThenElse(stmt.condition, body, None)) if inner else ([], stmt)
    cut = isinstance(stmt, tirx.AttrStmt) and stmt.attr_key == PARTITION
    loop = stmt.body if cut else stmt
    if not isinstance(loop, tirx.For) or loop.kind != tirx.ForKind.PARALLEL:
        return [], stmt
    inner, body = _nest(loop.body)
    return [(loop, cut), *inner], body


def _places(loops: list[tuple[Any, bool]], task: Any) -> list[tuple[Any, bool, Any]]:
    """Each loop, with whether it is cut, and the iteration that a task belongs to."""
    found = []
    for loop, cut in reversed(loops):
        found.append((loop, cut, task % loop.extent))
        task = task // loop.extent
    return found[::-1]


def _tile(body: Any, places: list[tuple[Any, bool, Any]]) -> Any:
    """The body of a task, with code of its own for each last iteration of a loop that is cut."""
    if not places:
        return body
    (loop, cut, place), *others = places
    last = loop.extent - 1

    def at(iteration: Any) -> Any:
        return _tile(substituted(body, [(loop.loop_var, iteration)]), others)

    return tirx.IfThenElse(place < last, at(place), at(last)) if cut else at(place)
