"""Axes along which a stage goes through all its tensors from end to end, as one axis would.

    for h, w, c: y[h, w, c] = table[x[h, w, c]]   -->   for i: y[i] = table[x[i]]

Rows that fill no vectors are joined like this, so that vectors go on from one row to the next.
"""

from typing import Any

from .._tvm import collect, shape_of, structural_map, tirx, tvm, uses
from .block_view import SPATIAL, BlockView


def contiguous_axes(view: BlockView) -> int:
    """How many of a stage's innermost axes may be joined: 1 where none may.

    Every tensor has these axes as its innermost ones, or does not depend on them. A table may be
    read anywhere, at places that such tensors hold.
    """
    own = [axis.var for axis in view.axes(SPATIAL)]
    stores = collect(view.node.body, tirx.BufferStore)
    if not own or len(stores) != 1 or not _are(list(stores[0].indices), own):
        return 1
    if any(uses(_without_loads(stores[0].value), var) for var in own):
        return 1  # what it computes depends on the place, as padding does
    if any(_is_computed(index, own) for _, indices in view.operands for index in indices):
        return 1
    read = [one for one in view.operands if not collect(one[1], tvm.ir.TensorLoad)]
    counts = range(2, len(own) + 1)
    fit = (n for n in counts if all(_is_along(*one, own[-n:], view.spatial[-n:]) for one in read))
    return max(fit, default=1)


def _are(indices: list[Any], own: list[Any]) -> bool:
    """Whether indices are variables of axes, in order."""
    return len(indices) == len(own) and all(map(lambda i, var: i.same_as(var), indices, own))


def _is_computed(index: Any, own: list[Any]) -> bool:
    """Whether a place in a table is computed from the stage's own, and not only looked up."""
    plain = _without_loads(index)
    looked_up = bool(collect(index, tvm.ir.TensorLoad))
    return looked_up and not isinstance(plain, tirx.Var) and any(uses(plain, var) for var in own)


def _without_loads(value: Any) -> Any:
    """A value with numbers in place of what it reads."""
    return structural_map(value, (tvm.ir.TensorLoad, _zero), order="pre")


def _zero(load: Any) -> Any:
    return tirx.const(0, str(load.ty.dtype))


def _is_along(buffer: Any, indices: list[Any], own: list[Any], extents: list[int]) -> bool:
    """Whether a tensor's innermost axes are these of a stage, or it does not depend on them."""
    count = len(own)
    if not any(uses(index, var) for index in indices for var in own):
        return True
    if any(uses(index, var) for index in indices[:-count] for var in own):
        return False
    return _are(indices[-count:], own) and list(shape_of(buffer)[-count:]) == extents
