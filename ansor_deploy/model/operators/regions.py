"""Operators that pool regions of images; each region names its image by index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..._lazy_tvm import relax
from .aligned_regions import Pooling
from .converting import Call
from .indices import in_range
from .operator import Operator, choice

_IMAGE = "the image of a region"
_AVERAGE = choice("mode", "avg", "avg")
_SHORT = ("float16", "bfloat16")


def roi_align(call: Call) -> Any:
    """Averages of interpolated points, channels last, so that a point's channels are contiguous."""
    kind = call.dtype(0)
    exact = "float32" if kind in _SHORT else kind
    data, regions = (_as(call, given, exact) for given in call.inputs[:2])
    images = in_range(call, call.inputs[2], call.shape(0)[:1], negative=False, of=_IMAGE)
    last = call.emit(relax.op.permute_dims(data, [0, 2, 3, 1]))
    pooled = call.bb.emit_te(
        _pooling(call).compute, last, regions, images, primfunc_name_hint="roi_align"
    )
    made = call.emit(pooled)
    return _as(call, call.emit(relax.op.permute_dims(made, [0, 3, 1, 2])), kind)


def _pooling(call: Call) -> Pooling:
    before = "output_half_pixel" if call.opset < 16 else "half_pixel"
    return Pooling(
        (call.attribute("output_height", 1), call.attribute("output_width", 1)),
        call.attribute("sampling_ratio", 0),
        call.attribute("spatial_scale", 1.0),
        call.attribute("coordinate_transformation_mode", before) == "half_pixel",
    )


def _as(call: Call, tensor: Any, kind: str) -> Any:
    return tensor if str(tensor.ty.dtype) == kind else call.emit(relax.op.astype(tensor, kind))


def max_roi_pool(call: Call) -> Any:
    """Maxima over parts of a region; the region's first number is its image."""
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
    Operator("RoiAlign", since=10, limits=(_AVERAGE,), convert=roi_align),
    Operator("MaxRoiPool", convert=max_roi_pool),
)
