"""Turn a parallel loop with little work into a serial one.

Handing out tasks and waiting for them takes a microsecond or two where all threads are awake and
have a processor each, and longer where they sleep or share processors.
"""

import math
from typing import Any

from ..._tvm import structural_map, tirx, tvm
from ...space.code_size import operations
from .tile_tasks import nests

# Vector operations that take one core about as long as starting other cores takes: some 3 us.
WORTH_OTHERS = 1 << 13


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.SmallLoops")
def small_loops(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with nests of parallel loops as serial ones where they are too small."""
    small = [nest for nest in nests(func.body) if _steps(nest[0]) < WORTH_OTHERS]
    variables = {loop.loop_var for nest in small for loop in nest}

    def alone(loop: Any) -> Any:
        return serial(loop) if loop.loop_var in variables else loop

    return func.with_body(structural_map(func.body, (tirx.For, alone)))


def serial(loop: Any) -> Any:
    """The same loop as a serial one."""
    kept = (loop.body, loop.thread_binding, loop.annotations, loop.step, loop.span)
    return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, *kept)


def _steps(node: Any) -> float:
    """How many operations on vectors or scalars a statement does; infinite where unknown."""
    if node is None or isinstance(node, tirx.AllocBuffer):
        return 0
    if isinstance(node, tirx.AttrStmt):
        node = node.body
    if isinstance(node, tirx.For):
        vectors = node.kind == tirx.ForKind.VECTORIZED
        count = int(node.extent) if isinstance(node.extent, tirx.IntImm) else math.inf
        return (1 if vectors else count) * _steps(node.body)
    if isinstance(node, tirx.SeqStmt):
        return sum(map(_steps, node.seq))
    if isinstance(node, tvm.s_tir.SBlockRealize):
        return _steps(node.block.body) + _steps(node.block.init)
    if isinstance(node, tirx.BufferStore):
        return 1 + operations(node.value)
    return math.inf
