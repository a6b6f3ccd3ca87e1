"""Which tiles are small enough to compile: a long epilogue is repeated for each of its vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._tvm import collect, tirx
from ..target import Target
from .block_view import BlockView
from .code_size import MOST_OPERATIONS, operations
from .loops import lanes

# Part of a kernel's largest code size that an epilogue may take; the reduction takes the rest.
EPILOGUE_SHARE = 0.6


def first_that_fits(
    view: BlockView, epilogue: BlockView, tiles: Sequence[tuple[int, ...]], target: Target
) -> int:
    """The index of the best tile whose epilogue is not too much code; else of the smallest code.

    tiles: sizes of the reduction's axes, the best first.
    """
    stores = collect(epilogue.node.body, tirx.BufferStore)
    each = sum(1 + operations(store.value) for store in stores)
    sizes = [each * _copies(view.spatial, tile, lanes(target, epilogue.bits)) for tile in tiles]
    fit = [at for at, size in enumerate(sizes) if size <= EPILOGUE_SHARE * MOST_OPERATIONS]
    return fit[0] if fit else sizes.index(min(sizes))


def _copies(extents: Sequence[int], tile: tuple[int, ...], width: int) -> int:
    """Vectors of a tile; twice as many where the rest of an axis is separate code."""
    uneven = any(whole % size for whole, size in zip(extents, tile, strict=True))
    return math.prod(tile) // math.gcd(tile[-1], width) * (2 if uneven else 1)
