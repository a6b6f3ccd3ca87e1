"""Windows: the inputs that the results along a row of an image read."""

from __future__ import annotations

from dataclasses import dataclass

from .._tvm import uses
from .block_view import REDUCE, SPATIAL, BlockView, divisions, factor


@dataclass(frozen=True)
class Window:
    """A row of taps.

    results: how many the last row axis has. taps: how many the row has. axis: the position of the
    axis over the taps among the reducing axes; -1 without one. own_columns: whether each column of
    the result reads a column of its own, as in a depthwise convolution.
    """

    results: int
    taps: int
    stride: int
    dilation: int
    axis: int
    own_columns: bool

    @classmethod
    def of(cls, view: BlockView) -> Window:
        """The window along the last row axis of a block."""
        *_, row, column = view.axes(SPATIAL)
        taps = [one for one in view.axes(REDUCE) if int(one.dom.extent) > 1]
        for _, indices in view.operands:
            own = uses(indices[-1], column.var) and not divisions(indices[-1], "FloorDiv")
            own = own and not any(uses(indices[-1], one.var) for one in taps)
            for index in indices:
                moving = [one for one in view.axes(REDUCE) if uses(index, one.var)]
                if uses(index, row.var) and moving:
                    (tap, *_) = moving
                    stride, dilation = (factor(index, axis.var) for axis in (row, tap))
                    at = next(n for n, one in enumerate(view.axes(REDUCE)) if one.same_as(tap))
                    extents = int(row.dom.extent), int(tap.dom.extent)
                    return cls(*extents, stride, dilation, at, own)
        return cls(int(row.dom.extent), 1, 1, 1, -1, False)

    def inputs(self, size: int) -> int:
        """How many different inputs this many results read."""
        reads = {w * self.stride + s * self.dilation for w in range(size) for s in range(self.taps)}
        return len(reads)

    def cost(self, size: int, vectors: int) -> float:
        """The cost of a row of taps for all results: vector multiply-adds and loads.

        size: results of a tile; sizes that do not divide cost 5% more.
        """
        parts = [(self.results // size, size), (1, self.results % size)]
        whole = sum(n * (own * self.taps + self.inputs(own) + self.taps) for n, own in parts if own)
        return whole * (1 if self.results % size == 0 else 1.05)
