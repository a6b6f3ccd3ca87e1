"""The places of windows along the axes that convolutions and pools slide over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from ..onnx.skeleton import attribute


@dataclass(frozen=True)
class Windows:
    """Windows along one axis. before: padding in front of its first element. made: how many."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    made: int

    @classmethod
    def padded(cls, size: int, given: Sequence[int], pads: Sequence[int], *, ceil: int) -> Windows:
        """The windows of an axis with this padding. given: kernel, stride, dilation."""
        kernel, stride, dilation = given
        room = size + sum(pads) - dilation * (kernel - 1) - 1
        steps = -(-room // stride) if ceil else room // stride
        if ceil and steps * stride >= size + pads[0]:  # the last window would be padding only
            steps -= 1
        return cls(size, kernel, stride, dilation, pads[0], steps + 1)

    @classmethod
    def same(cls, size: int, given: Sequence[int], *, upper: bool) -> Windows:
        """The windows of an axis that is padded to have one window for each stride."""
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
        """Elements of padding behind the axis."""
        return max(self._end - self.size, 0)

    @property
    def is_whole(self) -> bool:
        """Whether there is one window, which covers the whole axis."""
        return (self.made, self.kernel, self.before, self._end) == (1, self.size, 0, self.size)

    @property
    def counts(self) -> np.ndarray:
        """How many elements of each window are not padding."""
        first = np.arange(self.made)[:, None] * self.stride - self.before
        at = first + np.arange(self.kernel) * self.dilation
        return np.count_nonzero((at >= 0) & (at < self.size), axis=1)


def windows(node: NodeProto, sizes: Sequence[int], kernel: Sequence[int]) -> list[Windows]:
    """The windows of each axis that a node slides over. kernel: the size along each axis."""
    rank, how = len(sizes), attribute(node, "auto_pad", "NOTSET")
    steps = [attribute(node, name) or [1] * rank for name in ("strides", "dilations")]
    pads = (how == "NOTSET" and attribute(node, "pads")) or [0] * 2 * rank
    axes = zip(sizes, kernel, *steps, strict=True)
    if how.startswith("SAME"):
        return [Windows.same(n, given, upper=how == "SAME_UPPER") for n, *given in axes]
    ceil, ends = attribute(node, "ceil_mode", 0), zip(pads[:rank], pads[rank:], strict=True)
    each = zip(axes, ends, strict=True)
    return [Windows.padded(n, given, both, ceil=ceil) for (n, *given), both in each]
