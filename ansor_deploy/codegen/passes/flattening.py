"""Flatten buffers of several axes to one axis, without TVM's wrong simplification of indices.

    y[i, j] = x[(i % 8 + 3) // 8, j]   -->   y[i * 60 + j] = x[(i % 8 + 3) // 8 * 60 + j]

TVM's pass also rewrites indices as maps of iterators. It does so wrongly wherever a constant is
added before a division, or a condition bounds an iterator from below: this index would become
`(i + 3) % 8 // 8`, and the kernel would read another row, or beyond the tensor. The pass rewrites
no index where the range of a loop depends on another loop. So two such loops of one step are put
around the body while it runs. TVM's `StmtSimplify` does what simplification is correct.
"""

from __future__ import annotations

from typing import Any

from ..._tvm import structural_map, tirx, tvm


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Flattened")
def flattened(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with flat buffers in its body; the parameters keep their shapes."""
    zero, one = (tirx.const(number, "int64") for number in (0, 1))
    outer, inner = (tirx.Var(name, "int64") for name in ("outer", "inner"))
    within = tirx.For(inner, zero, outer + one, tirx.ForKind.SERIAL, func.body)
    within = tirx.For(outer, zero, one, tirx.ForKind.SERIAL, within)
    mod = tvm.IRModule({"main": func.with_body(within)})
    made = tirx.transform.FlattenBuffer()(mod)["main"]

    def opened(loop: Any) -> Any:
        ours = loop.loop_var.same_as(outer) or loop.loop_var.same_as(inner)
        return loop.body if ours else loop

    return made.with_body(structural_map(made.body, (tirx.For, opened)))
