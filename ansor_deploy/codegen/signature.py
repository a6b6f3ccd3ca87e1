"""What a task's function is called with, read from its program."""

from __future__ import annotations

from typing import Any

from .._tvm import structural_walk, tirx, tvm
from ..runtime.tensors import Signature

_INT_VALUES = 4


def signature(mod: Any) -> Signature:
    """Of the function `main` of a task's canonical module."""
    func = mod["main"]
    return Signature(
        shapes=tuple(tuple(int(extent) for extent in p.shape) for p in func.params),
        dtypes=tuple(str(p.dtype) for p in func.params),
        outputs=written(func),
        bound=_index_bound(func),
        reduction=_longest_sum(func),
    )


def written(func: Any) -> tuple[int, ...]:
    """Positions of the parameters that a PrimFunc stores to."""
    stored: set[int] = set()

    def visit(store: Any) -> None:
        stored.update(at for at, p in enumerate(func.params) if p.same_as(store.buffer))

    structural_walk(func.body, (tirx.BufferStore, visit))
    return tuple(sorted(stored))


def _index_bound(func: Any) -> int:
    """Integer inputs below this are valid wherever loaded values serve as indices; 0: nowhere."""
    bounds: list[int] = []

    def visit(access: Any) -> None:
        source = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        for index, extent in zip(access.indices, source.shape, strict=True):
            if _loads(index):
                bounds.append(int(extent))

    structural_walk(func.body, (tvm.ir.TensorLoad, visit))
    structural_walk(func.body, (tirx.BufferStore, visit))
    return max(1, min(_INT_VALUES, *bounds)) if bounds else 0


def _loads(expr: Any) -> bool:
    found: list[bool] = []
    structural_walk(expr, (tvm.ir.TensorLoad, lambda _: found.append(True)))
    return bool(found)


def _longest_sum(func: Any) -> int:
    lengths = [1]

    def visit(block: Any) -> None:
        length = 1
        for axis in block.iter_vars:
            if axis.iter_type == tirx.IterVar.CommReduce:
                length *= int(axis.dom.extent)
        lengths.append(length)

    structural_walk(func.body, (tvm.s_tir.SBlock, visit))
    return max(lengths)
