"""Which tile a compiler should be given: a long epilogue is written out for each of its vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._tvm import collect, tirx
from ..target import Target
from .block_view import BlockView
from .code_size import MOST_OPERATIONS, operations
from .loops import lanes

# Of what a kernel may write out, an epilogue's part: the sums themselves are code as well.
EPILOGUE_SHARE = 0.6


def first_that_fits(
    view: BlockView, epilogue: BlockView, tiles: Sequence[tuple[int, ...]], target: Target
) -> int:
    """The index of the best tile with which an epilogue is not too much code; else of the least.

    tiles: sizes of the reduction's axes, the best first.
    """
    stores = collect(epilogue.node.body, tirx.BufferStore)
    each = sum(1 + operations(store.value) for store in stores)
    sizes = [each * _copies(view.spatial, tile, lanes(target, epilogue.bits)) for tile in tiles]
    fit = [at for at, size in enumerate(sizes) if size <= EPILOGUE_SHARE * MOST_OPERATIONS]
    return fit[0] if fit else sizes.index(min(sizes))


def _copies(extents: Sequence[int], tile: tuple[int, ...], width: int) -> int:
    """Vectors of a tile, twice where the rest of an axis is code of its own."""
    uneven = any(whole % size for whole, size in zip(extents, tile, strict=True))
    return math.prod(tile) // math.gcd(tile[-1], width) * (2 if uneven else 1)
