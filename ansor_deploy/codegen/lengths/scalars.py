"""Express numbers that kernels compute in terms of other numbers: multiples, sums, quotients.

    rows[()] = (steps[()] * 4 + 3) // 2    -->    2 * steps + 1

So the sizes of images of several scales are all known in terms of the one number that a run gives,
and not as separate unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._tvm import shape_of
from ..blocks import Leaf
from .asked import Known, number_of


def note_numbers(every: Sequence[Leaf], known: Known) -> None:
    """Note the buffers of one element whose number has a bound in terms of other numbers."""
    buffers = [leaf.block.body.buffer for leaf in every]
    for leaf, buffer in zip(every, buffers, strict=True):
        alone = sum(buffer.same_as(other) for other in buffers) == 1
        if not alone or shape_of(buffer) not in ((), (1,)) or str(buffer.dtype) != "int64":
            continue
        found = number_of(leaf.block.body.value, known)
        if leaf.block.init is None and found is not None:
            known.numbers[buffer] = found
