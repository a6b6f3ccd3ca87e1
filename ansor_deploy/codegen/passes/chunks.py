"""Split the tasks of a parallel loop into the chunks that the thread pool hands out, evenly.

    parallel t in 49: task(t)
    -->
    parallel c in 32:                               two threads, 16 chunks each
        for t in c * 49 / 32 .. (c + 1) * 49 / 32: task(t)

A loop is cut into as many chunks as the thread pool makes for one thread a core of the target
(CHUNKS in thread_pool.c). Otherwise its first chunks would have two tasks each and the last ones
none: the first thread would begin with two thirds of the tasks, and the others would steal them one
by one. This way each thread begins with its share, and the same core computes the same rows in
kernel after kernel.
"""

from typing import Any

from ..._tvm import structural_map, tirx
from .tile_tasks import nests

CHUNKS = 16
# With more tasks, uneven chunks make no difference, and the indices' products might overflow.
_MANY = 1 << 16


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Chunks")
def chunks(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with each parallel loop that is not nested in another split into chunks."""
    cores = int(func.attrs["target"].attrs.get("num-cores", 1))
    if cores < 2:
        return func
    alone = {nest[0].loop_var for nest in nests(func.body) if len(nest) == 1}

    def cut(loop: Any) -> Any:
        extent = int(loop.extent) if isinstance(loop.extent, tirx.IntImm) else 0
        even = extent % (CHUNKS * cores) == 0 or extent > _MANY
        return loop if even or loop.loop_var not in alone else _cut(loop, extent, CHUNKS * cores)

    return func.with_body(structural_map(func.body, (tirx.For, cut)))


def _cut(loop: Any, extent: int, count: int) -> Any:
    """A parallel loop that begins at 0, as a loop over `count` chunks."""
    chunk = tirx.Var("chunk", loop.loop_var.ty.dtype)
    first, end = chunk * extent // count, (chunk + 1) * extent // count
    tasks = tirx.For(loop.loop_var, first, end - first, tirx.ForKind.SERIAL, loop.body)
    return tirx.For(chunk, 0, count, tirx.ForKind.PARALLEL, tasks, None, loop.annotations)
