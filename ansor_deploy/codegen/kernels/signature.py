"""The signature of a task's function, read from its program."""

import math
from typing import Any

from ..._tvm import collect, shape_of, tirx, tvm
from ...runtime.tensors import INT_VALUES, Signature


def signature(mod: Any) -> Signature:
    """The signature of the function `main` of a task's canonical module."""
    func = mod["main"]
    return Signature(
        shapes=tuple(map(shape_of, func.params)),
        dtypes=tuple(str(p.dtype) for p in func.params),
        outputs=written(func),
        bound=_index_bound(func),
        reduction=_longest_sum(func),
        weights=tuple(int(at) for at in (func.attrs or {}).get("layout_free_buffers", ())),
    )


def written(func: Any) -> tuple[int, ...]:
    """Positions of the parameters that a PrimFunc stores to."""
    stored = [store.buffer for store in collect(func.body, tirx.BufferStore)]
    params = enumerate(func.params)
    return tuple(at for at, p in params if any(p.same_as(buffer) for buffer in stored))


def _index_bound(func: Any) -> int:
    """Integer inputs below this are valid indices wherever a loaded value is used as one.

    0 where no loaded value is an index.
    """
    bounds: list[int] = []
    for access in collect(func.body, tvm.ir.TensorLoad, tirx.BufferStore):
        source = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        for index, extent in zip(access.indices, source.shape, strict=True):
            if collect(index, tvm.ir.TensorLoad):
                bounds.append(int(extent))
    return max(1, min(INT_VALUES, *bounds)) if bounds else 0


def _longest_sum(func: Any) -> int:
    return max((_summands(block) for block in collect(func.body, tvm.s_tir.SBlock)), default=1)


def _summands(block: Any) -> int:
    summed = (a for a in block.iter_vars if a.iter_type == tirx.IterVar.CommReduce)
    return math.prod(int(axis.dom.extent) for axis in summed)
