"""Transposed convolutions as convolutions that never multiply by an inserted zero.

With stride S, an output position t = S * p + f reads only inputs and taps of one remainder:

    out[i * S + k - P, o] += x[i, c] * w[c, o, k]
    -->
    y[f, p, o] = sum over j < ceil(K / S), c: x[p + (f + P) // S - j, c]
                                              * w[c, o, (f + P) % S + S * j]
    out[S * p + f, o] = y[f, p, o]

Each phase f is a convolution with its own weights. All phases are one program, whose tiles are
stored to their places in the result. Where a phase has too few channels to fill vectors, the phases
become channels of one dense convolution instead, which is interleaved afterwards (sub-pixel
convolution, Shi et al. 2016): this also computes the border of the phases, and costs a copy.
"""

import math
from typing import Any

import numpy as np

from ..._tvm import relax, shape_of
from .dataflow import Walk, constant_of
from .transposed_geometry import Geometry
from .transposed_phases import SPATIAL, apart, split_taps, together


def transposed_convolution(
    walk: Walk, data: Any, weight: np.ndarray, attrs: Any, shape: list[int], lanes: int
) -> Any:
    """The result, channels last; None for a dilated convolution.

    data: channels last. weight: [in, out of a group, taps...]. shape: of the result, channels
    first. lanes: float32 elements of a vector.
    """
    if any(int(d) != 1 for d in attrs.dilation):
        return None
    groups = int(attrs.groups)
    geometry = Geometry.of(data, weight[: len(weight) // groups], attrs, shape)
    costs = geometry.costs(lanes)
    way = min(costs, key=costs.__getitem__) if groups == 1 else "dense"
    if way == "dense":
        made = _dense(walk, data, weight, geometry, groups)
    else:
        made = WAYS[way](walk, data, weight, geometry)
    begins = geometry.cuts if way == "dense" else [0] * len(geometry.cuts)
    ends = [begin + size for begin, size in zip(begins, geometry.sizes, strict=True)]
    if not any(begins) and ends == list(shape_of(made.ty)[1:-1]):
        return made
    return walk.emit(relax.op.strided_slice(made, list(range(1, 1 + len(ends))), begins, ends))


def _dense(walk: Walk, data: Any, weight: np.ndarray, geometry: Geometry, groups: int) -> Any:
    """The result before cropping: phases are output channels of each group, then interleaved."""
    dims = len(geometry.taps)
    spatial = SPATIAL[dims + 2]
    parts = [_dense_weights(part, geometry) for part in np.split(weight, groups)]
    if 1 < groups == len(weight):
        # Reading a channel for several results takes a gather for each tap; copying takes one for
        # all taps.
        data = walk.emit(relax.op.repeat(data, parts[0].shape[-1], dims + 1))
    phases = getattr(relax.op.nn, f"conv{dims}d")(
        data,
        constant_of(np.concatenate(parts, axis=-1)),
        padding=_dense_padding(geometry),
        groups=shape_of(data.ty)[-1] // geometry.depth,
        data_layout=f"N{spatial}C",
        kernel_layout=f"{spatial}IO",
    )
    return _interleave(walk, walk.emit(phases), geometry, groups)


def _dense_weights(weight: np.ndarray, geometry: Geometry) -> np.ndarray:
    """[taps / stride..., in, stride... x out], the taps of a phase in reverse order."""
    split, steps, phases = split_taps(weight, geometry)
    flipped = np.flip(split.transpose(*steps, 0, *phases, 1), tuple(range(len(steps))))
    outputs = math.prod(geometry.strides) * geometry.outputs
    return np.ascontiguousarray(flipped.reshape(*geometry.steps, geometry.depth, outputs))


def _dense_padding(geometry: Geometry) -> list[int]:
    """The padding with which each position reads the inputs of all its taps, and no others."""
    skipped = [
        (begin - cut) // stride
        for begin, cut, stride in zip(geometry.begins, geometry.cuts, geometry.strides, strict=True)
    ]
    before = [steps - 1 - skip for steps, skip in zip(geometry.steps, skipped, strict=True)]
    counts = zip(geometry.dense_counts, geometry.extents, skipped, strict=True)
    return [*before, *(max(0, count + skip - extent) for count, extent, skip in counts)]


def _interleave(walk: Walk, phases: Any, geometry: Geometry, groups: int) -> Any:
    """[n, q..., g x r... x o] to [n, q x S + r..., g x o]."""
    strides, outputs, dims = geometry.strides, geometry.outputs, len(geometry.strides)
    if max(strides) == 1:
        return phases
    batch, *made, _ = shape_of(phases.ty)
    apart = [groups] if groups > 1 else []
    split = walk.emit(relax.op.reshape(phases, [batch, *made, *apart, *strides, outputs]))
    first = 1 + dims + len(apart)  # the first axis of phases
    pairs = [axis for d in range(dims) for axis in (1 + d, first + d)]
    order = [0, *pairs, *range(1 + dims, first), first + dims]
    mixed = walk.emit(relax.op.permute_dims(split, order))
    sizes = [count * stride for count, stride in zip(made, strides, strict=True)]
    return walk.emit(relax.op.reshape(mixed, [batch, *sizes, groups * outputs]))


WAYS = {"together": together, "apart": apart}
