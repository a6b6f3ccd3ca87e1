"""Turn a parallel loop with little work into a serial one.

Handing out tasks and waiting for them takes half a microsecond where all threads are awake and have
a processor each, and longer where they sleep or share processors. A core alone also waits for what
other cores have written: on a Zen 4 a copy of 180 KB takes 5 us where one core has made it all, and
22 us where another one has made half of it.
"""

import math
from typing import Any

from ..._tvm import structural_map, tirx, tvm
from ...space.code_size import operations
from .tile_tasks import nests

# Vector operations that are worth other cores: one core takes some 3 us for them.
WORTH_OTHERS = 1 << 13
# So many operations take as long as to read and write a cache line that half the time another core
# has, and bytes of such a line.
MOVING = 16
LINE = 64


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.SmallLoops")
def small_loops(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with nests of parallel loops as serial ones where they are too small."""
    results = set(func.params)
    small = [nest for nest in nests(func.body) if _steps(nest[0], results) < WORTH_OTHERS]
    variables = {loop.loop_var for nest in small for loop in nest}

    def alone(loop: Any) -> Any:
        return serial(loop) if loop.loop_var in variables else loop

    return func.with_body(structural_map(func.body, (tirx.For, alone)))


def serial(loop: Any) -> Any:
    """The same loop as a serial one."""
    kept = (loop.body, loop.thread_binding, loop.annotations, loop.step, loop.span)
    return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, *kept)


def _steps(node: Any, results: set[Any], lanes: float = 1) -> float:
    """How many operations on vectors or scalars a statement does; infinite where unknown.

    results: buffers that may be in another core's cache. lanes: elements of a vector.
    """
    if node is None or isinstance(node, tirx.AllocBuffer):
        return 0
    if isinstance(node, tirx.AttrStmt):
        node = node.body
    if isinstance(node, tirx.For):
        count = int(node.extent) if isinstance(node.extent, tirx.IntImm) else math.inf
        vectors = node.kind == tirx.ForKind.VECTORIZED
        times, lanes = (1, count) if vectors else (count, lanes)
        return times * _steps(node.body, results, lanes)
    if isinstance(node, tirx.SeqStmt):
        return sum(_steps(one, results, lanes) for one in node.seq)
    if isinstance(node, tvm.s_tir.SBlockRealize):
        return sum(_steps(one, results, lanes) for one in (node.block.body, node.block.init))
    if isinstance(node, tirx.BufferStore):
        moved = lanes * node.buffer.dtype.itemsize / LINE if node.buffer in results else 0
        return 1 + operations(node.value) + MOVING * moved
    return math.inf
