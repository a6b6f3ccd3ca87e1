"""Turn a vectorised loop with an allocation in it into a serial one: its lanes would share memory.

    for i in vector: m = memory; m[0] = x[i]; y[i] = m[0]   -->   for i in loop: ...

Each step of a serial loop has its own memory. TVM's `VectorizeLoop` leaves an allocation as it is,
so that all lanes write the same element (src/tirx/transform/vectorize_loop.cc, AllocBufferNode). No
rule makes such a vector, but a foreign trace may, from any loop around two stages.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm
from .small_loops import serial


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.SharedLanes")
def shared_lanes(func: Any, _mod: Any, _context: Any) -> Any:
    """The function without vectorised loops that contain all uses of a buffer it allocates."""
    blocks = collect(func.body, tvm.s_tir.SBlock)
    own = {buffer for block in blocks for buffer in block.alloc_buffers}
    everywhere = _uses(func.body)

    def apart(loop: Any) -> Any:
        if loop.kind != tirx.ForKind.VECTORIZED:
            return loop
        within = _uses(loop.body).items()
        shared = any(buffer in own and count == everywhere[buffer] for buffer, count in within)
        return serial(loop) if shared else loop

    return func.with_body(structural_map(func.body, (tirx.For, apart)))


def _uses(body: Any) -> Counter[Any]:
    """How often each buffer is read or written."""
    stores = [store.buffer for store in collect(body, tirx.BufferStore)]
    return Counter([*stores, *(load.source for load in collect(body, tvm.ir.TensorLoad))])
