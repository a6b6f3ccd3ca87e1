"""Express numbers that kernels compute in terms of other numbers: multiples, sums, quotients.

    rows[()] = (steps[()] * 4 + 3) // 2    -->    2 * steps + 1

So the sizes of images of several scales are all known in terms of the one number that a run gives,
and not as separate unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tvm import shape_of, tirx, tvm
from ..blocks import Leaf
from .asked import QUOTIENTS, Known
from .bound import Bound


def note_numbers(every: Sequence[Leaf], known: Known) -> None:
    """Note the buffers of one element whose number has a bound in terms of other numbers."""
    buffers = [leaf.block.body.buffer for leaf in every]
    for leaf, buffer in zip(every, buffers, strict=True):
        alone = sum(buffer.same_as(other) for other in buffers) == 1
        if not alone or shape_of(buffer) not in ((), (1,)) or str(buffer.dtype) != "int64":
            continue
        if leaf.block.init is None and (found := _of(leaf.block.body.value, known)) is not None:
            known.numbers[buffer] = found


def _of(value: Any, known: Known) -> Bound | None:
    """A bound that a number equals, or is a little less than; None where there is none."""
    if isinstance(value, tvm.ir.TensorLoad):
        return known.numbers.get(value.source)
    if isinstance(value, tirx.Cast):
        return _of(value.value, known)
    kinds = (tirx.Add, tirx.Sub, tirx.Mul, *QUOTIENTS)
    found = _of(value.a, known) if isinstance(value, kinds) else None
    by = None if found is None else _constant(value.b, known)
    return None if found is None or by is None else _changed(found, type(value), by)


def _changed(found: Bound, kind: Any, by: int) -> Bound | None:
    if kind in (tirx.Add, tirx.Sub):
        return found.scaled(1, by if kind is tirx.Add else -by)
    if by <= 0:
        return None
    return found.scaled(by, 0) if kind is tirx.Mul else found.floored(by)


def _constant(value: Any, known: Known) -> int | None:
    if isinstance(value, tirx.IntImm):
        return int(value)
    given = known.values.get(value.source) if isinstance(value, tvm.ir.TensorLoad) else None
    return None if given is None else int(given)
