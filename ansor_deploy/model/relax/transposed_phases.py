"""The phases of a transposed convolution, in one kernel or each in its own."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..._tvm import relax, tvm
from .dataflow import Walk, constant_of
from .patterns import INJECTIVE, OPAQUE, WITH_EPILOGUE
from .transposed_geometry import Geometry

SPATIAL = {3: "W", 4: "HW", 5: "DHW"}


def together(walk: Walk, data: Any, weight: np.ndarray, geometry: Geometry) -> Any:
    """The result by one kernel; whole phases may go beyond its end, which the caller cuts off."""
    pattern = WITH_EPILOGUE if geometry.is_whole else OPAQUE
    return walk.emit(
        walk.computed(
            _Phases(geometry).compute,
            data,
            constant_of(_phase_weights(weight, geometry)),
            primfunc_name_hint=f"conv{len(geometry.taps)}d_transpose",
            primfunc_attrs={"op_pattern": pattern},
        )
    )


@dataclass(frozen=True)
class _Phases:
    """The convolution of each phase, and their interleaving, in TE."""

    geometry: Geometry

    def compute(self, data: Any, weight: Any) -> Any:
        """The result. data: [batch, extents..., in]. weight: as `_phase_weights` makes it."""
        te, geometry = tvm.te, self.geometry
        batch, *_, depth = data.shape
        strided = self._strided
        split = [geometry.strides[axis] for axis in strided]
        taps = [te.reduce_axis((0, step), "tap") for step in geometry.steps]
        channel = te.reduce_axis((0, depth), "channel")
        padded = self._padded(data)

        def convolved(n: Any, *at: Any) -> Any:
            phases, places, output = at[: len(split)], at[len(split) : -1], at[-1]
            offset = dict(zip(strided, phases, strict=True))
            read = [
                place + self._first(axis, offset.get(axis, 0)) + tap
                for axis, (place, tap) in enumerate(zip(places, taps, strict=True))
            ]
            product = padded(n, *read, channel) * weight(*phases, *taps, channel, output)
            return te.sum(product, axis=[*taps, channel])

        counts, outputs = geometry.counts, geometry.outputs
        made = te.compute((batch, *split, *counts, outputs), convolved, "phases")

        def interleaved(n: Any, *at: Any) -> Any:
            *places, output = at
            phases = [places[axis] % geometry.strides[axis] for axis in strided]
            rows = [place // stride for place, stride in zip(places, geometry.strides, strict=True)]
            return made(n, *phases, *rows, output)

        sizes = [count * stride for count, stride in zip(counts, geometry.strides, strict=True)]
        return te.compute((batch, *sizes, outputs), interleaved, "interleave")

    @property
    def _strided(self) -> list[int]:
        """The axes that have several phases."""
        return [axis for axis, stride in enumerate(self.geometry.strides) if stride > 1]

    def _first(self, axis: int, phase: Any) -> Any:
        """The first padded input that position 0 of a phase reads."""
        geometry = self.geometry
        stride, begin = geometry.strides[axis], geometry.begins[axis]
        skipped = max(0, begin // stride - (geometry.steps[axis] - 1))
        ahead = (phase + begin % stride) // stride if begin % stride else 0
        return ahead + skipped

    def _padded(self, data: Any) -> Any:
        """The input with the zeros that the first and last positions read."""
        geometry, before, after = self.geometry, [], []
        for axis, (extent, count) in enumerate(zip(geometry.extents, geometry.counts, strict=True)):
            stride, steps = geometry.strides[axis], geometry.steps[axis]
            before.append(max(0, steps - 1 - geometry.begins[axis] // stride))
            last = count - 1 + self._first(axis, stride - 1) + steps - 1
            after.append(max(0, last - (extent + before[-1] - 1)))
        if not any(before + after):
            return data
        return tvm.topi.nn.pad(data, [0, *before, 0], [0, *after, 0])


def _phase_weights(weight: np.ndarray, geometry: Geometry) -> np.ndarray:
    """[phases..., taps..., in, out], the taps of a phase in reverse order."""
    split, steps, phases = split_taps(weight, geometry)
    dims = len(geometry.taps)
    ordered = split.transpose(*phases, *steps, 0, 1)
    ordered = np.roll(ordered, [-begin for begin in geometry.begins], tuple(range(dims)))
    flipped = np.flip(ordered, tuple(range(dims, 2 * dims)))
    unit = tuple(axis for axis in range(dims) if geometry.strides[axis] == 1)
    return np.ascontiguousarray(flipped.squeeze(unit))


def apart(walk: Walk, data: Any, weight: np.ndarray, geometry: Geometry) -> Any:
    """The result: each phase is a convolution with its own taps; one kernel interleaves them."""
    phases = list(product(*map(range, geometry.strides)))
    made = [_own_convolution(walk, data, weight, geometry, phase) for phase in phases]

    def interleaved(*parts: Any) -> Any:
        batch, *_, outputs = parts[0].shape
        strides = geometry.strides

        def cell(n: Any, *at: Any) -> Any:
            *places, output = at
            rows = [place // stride for place, stride in zip(places, strides, strict=True)]
            *others, value = [part(n, *rows, output) for part in parts]
            for phase, part in zip(reversed(phases[:-1]), reversed(others), strict=True):
                axes = zip(places, strides, phase, strict=True)
                here = tvm.te.all(*[place % stride == f for place, stride, f in axes if stride > 1])
                value = tvm.te.if_then_else(here, part, value)
            return value

        return tvm.te.compute((batch, *geometry.sizes, outputs), cell, "interleave")

    attrs = {"op_pattern": INJECTIVE}
    return walk.emit(walk.computed(interleaved, *made, primfunc_attrs=attrs))


def _own_convolution(
    walk: Walk, data: Any, weight: np.ndarray, geometry: Geometry, phase: tuple[int, ...]
) -> Any:
    """One phase from the inputs that it reads: [batch, positions..., out]."""
    dims, before, after = len(phase), [], []
    taps = [slice(None), slice(None)]
    for axis, f in enumerate(phase):
        ahead, remainder = divmod(f + geometry.begins[axis], geometry.strides[axis])
        last = geometry.positions_of(axis, f) - 1 + ahead
        before.append(geometry.taps_of(axis, f) - 1 - ahead)
        after.append(last - (geometry.extents[axis] - 1))
        taps.append(slice(remainder, None, geometry.strides[axis]))
    begins = [max(0, -border) for border in before]
    ends = [n - max(0, -border) for n, border in zip(geometry.extents, after, strict=True)]
    if any(begins) or ends != geometry.extents:
        data = walk.emit(relax.op.strided_slice(data, list(range(1, 1 + dims)), begins, ends))
    own = np.flip(weight[tuple(taps)], tuple(range(2, 2 + dims)))
    spatial = SPATIAL[2 + dims]
    made = getattr(relax.op.nn, f"conv{dims}d")(
        data,
        constant_of(np.ascontiguousarray(own.transpose(*range(2, 2 + dims), 0, 1))),
        padding=[max(0, border) for border in [*before, *after]],
        data_layout=f"N{spatial}C",
        kernel_layout=f"{spatial}IO",
    )
    return walk.emit(made)


def split_taps(weight: np.ndarray, geometry: Geometry) -> tuple[np.ndarray, range, range]:
    """The kernel as [in, out, (steps, phases)...], and the axes of steps and of phases."""
    padded = [
        n * s - k for n, s, k in zip(geometry.steps, geometry.strides, geometry.taps, strict=True)
    ]
    full = np.pad(weight, [(0, 0), (0, 0), *((0, extra) for extra in padded)])
    pairs = [n for pair in zip(geometry.steps, geometry.strides, strict=True) for n in pair]
    last = 2 + 2 * len(padded)
    return full.reshape(*weight.shape[:2], *pairs), range(2, last, 2), range(3, last, 2)
