"""End loops before their last steps, where these do nothing.

    for i in 6: if i < 4: y[i] = x[i]   -->   for i in 4: y[i] = x[i]

The loops of a tile that is cut short are like this. Later passes then see loops without conditions
there as well.
"""

from __future__ import annotations

from typing import Any

from ..._tvm import structural_map, tirx


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.ShortLoops")
def short_loops(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with loops that end where their bodies stop doing anything."""
    return func.with_body(structural_map(func.body, (tirx.For, _short)))


def _short(loop: Any) -> Any:
    body = loop.body
    if not isinstance(body, tirx.IfThenElse) or body.else_case is not None:
        return loop
    asked = body.condition
    if not isinstance(asked, tirx.LT) or not asked.a.same_as(loop.loop_var):
        return loop
    sizes = [one for one in (loop.min, loop.extent, asked.b) if isinstance(one, tirx.IntImm)]
    if len(sizes) < 3 or int(loop.min) != 0:
        return loop
    extent = tirx.const(min(int(loop.extent), int(asked.b)), loop.extent.ty.dtype)
    kept = (loop.thread_binding, loop.annotations, loop.step, loop.span)
    return tirx.For(loop.loop_var, loop.min, extent, loop.kind, body.then_case, *kept)
