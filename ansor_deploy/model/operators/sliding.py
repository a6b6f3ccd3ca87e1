"""Where windows lie along the axes of what they slide over: those of convolutions and of pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from ..onnx.skeleton import attribute


@dataclass(frozen=True)
class Windows:
    """Windows along one axis. before: elements of padding before the first one. made: how many."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    made: int

    @classmethod
    def padded(cls, size: int, given: Sequence[int], pads: Sequence[int], *, ceil: int) -> Windows:
        """Of an axis with so much padding. given: kernel, stride, dilation."""
        kernel, stride, dilation = given
        room = size + sum(pads) - dilation * (kernel - 1) - 1
        steps = -(-room // stride) if ceil else room // stride
        if ceil and steps * stride >= size + pads[0]:  # a window of padding alone
            steps -= 1
        return cls(size, kernel, stride, dilation, pads[0], steps + 1)

    @classmethod
    def same(cls, size: int, given: Sequence[int], *, upper: bool) -> Windows:
        """Of an axis with as much padding as a window for each stride takes."""
        kernel, stride, dilation = given
        made = -(-size // stride)
        pads = max((made - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
        return cls(size, kernel, stride, dilation, pads // 2 if upper else pads - pads // 2, made)

    @property
    def _end(self) -> int:
        """Where the last window ends."""
        return (self.made - 1) * self.stride + self.dilation * (self.kernel - 1) + 1 - self.before

    @property
    def after(self) -> int:
        """Elements of padding behind the last one."""
        return max(self._end - self.size, 0)

    @property
    def is_whole(self) -> bool:
        """Whether there is one window, which is the axis."""
        return (self.made, self.kernel, self.before, self._end) == (1, self.size, 0, self.size)

    @property
    def counts(self) -> np.ndarray:
        """How many elements of each window are no padding."""
        first = np.arange(self.made)[:, None] * self.stride - self.before
        at = first + np.arange(self.kernel) * self.dilation
        return np.count_nonzero((at >= 0) & (at < self.size), axis=1)


def windows(node: NodeProto, sizes: Sequence[int], kernel: Sequence[int]) -> list[Windows]:
    """Of each axis of what a node slides over, by its attributes. kernel: elements an axis."""
    rank, how = len(sizes), attribute(node, "auto_pad", "NOTSET")
    steps = [attribute(node, name) or [1] * rank for name in ("strides", "dilations")]
    pads = (how == "NOTSET" and attribute(node, "pads")) or [0] * 2 * rank
    axes = zip(sizes, kernel, *steps, strict=True)
    if how.startswith("SAME"):
        return [Windows.same(n, given, upper=how == "SAME_UPPER") for n, *given in axes]
    ceil, ends = attribute(node, "ceil_mode", 0), zip(pads[:rank], pads[rank:], strict=True)
    each = zip(axes, ends, strict=True)
    return [Windows.padded(n, given, both, ceil=ceil) for (n, *given), both in each]
