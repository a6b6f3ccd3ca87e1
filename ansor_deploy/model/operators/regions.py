"""Operators that pool regions of images, each of which names its image by index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..._lazy_tvm import relax
from .converting import Call
from .indices import in_range
from .operator import Limit, Operator, choice

_IMAGE = "the image of a region"
_AVERAGE = choice("mode", "avg", "avg")
# Without one, a loop would be as long as the values of a region say.
_RATIO = Limit("`sampling_ratio` is positive", lambda use: use.attribute("sampling_ratio", 0) < 1)


def roi_align(call: Call) -> Any:
    """Averages of interpolated points; TVM's with images that there are."""
    data, regions, images = call.inputs
    known = in_range(call, images, call.shape(0)[:1], negative=False, of=_IMAGE)
    return replace(call, inputs=[data, regions, known]).by_tvm()


def max_roi_pool(call: Call) -> Any:
    """Maxima of parts of a region; its first number is its image."""
    data, regions = call.inputs
    first, rest = (
        call.emit(relax.op.strided_slice(regions, [1], [begin], [end]))
        for begin, end in ((0, 1), (1, 5))
    )
    images = call.emit(relax.op.astype(first, "int64"))
    known = in_range(call, images, call.shape(0)[:1], negative=False, of=_IMAGE)
    named = call.emit(relax.op.astype(known, call.dtype(1)))
    joined = call.emit(relax.op.concat([named, rest], 1))
    return replace(call, inputs=[data, joined]).by_tvm()


OPERATORS = (
    Operator("RoiAlign", since=10, limits=(_AVERAGE, _RATIO), convert=roi_align),
    Operator("MaxRoiPool", convert=max_roi_pool),
)
