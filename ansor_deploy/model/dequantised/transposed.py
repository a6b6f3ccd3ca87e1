"""A ConvTranspose of tensors that stand for bytes, as a Conv with interleaved channels.

    ConvTranspose(x, w), strides s  -->  Conv(x, v) ; Reshape ; Transpose ; Reshape ; Slice

Results less than s apart are computed from the same elements of x, with different taps: they become
channels of one Conv without strides. `v` has the taps of w in reverse, and zeros where w has none.
So its sums are sums of bytes, as for any Conv (`layers.py`), and the interleaving moves bytes
(`moves.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np
from onnx import NodeProto, helper

from ..graph.graph import Graph
from ..operators.emitter import Emitter
from ..operators.quantization import INT32
from .real import Real, is_dequantize, real_of


def transposed(graph: Graph) -> None:
    """Write each ConvTranspose of bytes as a Conv. graph: as for `integers.integers`."""
    makers, nodes = graph.producers(), list[NodeProto]()
    for node in graph.nodes:
        made = _made(graph, node, makers) if node.op_type == "ConvTranspose" else None
        nodes += [node] if made is None else made
    if len(nodes) > len(graph.nodes):
        graph.nodes = nodes
        graph.infer()


def _made(graph: Graph, node: NodeProto, makers: Mapping[str, NodeProto]) -> list[NodeProto] | None:
    """The nodes that replace a ConvTranspose; None if it is not of bytes, or not a plain window."""
    x, w, *rest = (_real(graph, makers.get(name)) for name in node.input if name)
    if x is None or w is None or graph.value(w.data) is None:
        return None
    if not (x.is_whole and (x.is_bytes or x.is_words) and w.is_bytes):
        return None
    if not (w.is_whole or w.axis == 1):
        return None
    emit = Emitter(graph, node)
    axes = _Axis.of(emit)
    bias = _bias(graph, node, rest)
    if axes is None or bias is None:
        return None
    shuffle = _Shuffle(emit.attribute("group", 1), [one.stride for one in axes])
    return shuffle.written(emit, w, bias, axes)


def _real(graph: Graph, made_by: NodeProto | None) -> Real | None:
    return real_of(graph, made_by) if made_by is not None and is_dequantize(made_by) else None


def _bias(graph: Graph, node: NodeProto, rest: list[Real | None]) -> list[np.ndarray] | None:
    """A bias: [integers, scale], [floats], or [] if there is none; None if it is not constant."""
    if not rest:
        return []
    known = graph.value(rest[0].data if rest[0] else node.input[2])
    if known is None or (rest[0] is not None and rest[0].zero.any()):
        return None
    return [known, rest[0].scale] if rest[0] else [known]


@dataclass(frozen=True)
class _Axis:
    """One axis of a window, with the place of the results in the Conv's output.

    front: zeros before the taps. taps: of the Conv. before, after: its padding. start, extent: of
    the results.
    """

    stride: int
    kernel: int
    front: int
    taps: int
    before: int
    after: int
    start: int
    extent: int

    @classmethod
    def of(cls, emit: Emitter) -> list[_Axis] | None:
        """The axes of a node; None if it is dilated, or crops more than padding can."""
        data, kernel = (emit.shape(emit.input(at))[2:] for at in (0, 1))
        made, rank = emit.known_shape(emit.node.output[0]), len(data)
        how = [emit.attribute(name) for name in ("strides", "dilations", "pads")]
        strides, dilations = (tuple(one or (1,) * rank) for one in how[:2])
        asked = emit.attribute("output_shape") or emit.attribute("auto_pad", "NOTSET") != "NOTSET"
        if made is None or asked or set(dilations) != {1}:
            return None
        pads = tuple(how[2] or (0,) * rank)
        given = zip(data, kernel, strides, pads, made[2:], strict=False)
        found = [cls._of(*one) for one in given]
        return found if all(min(one.before, one.after) >= 0 for one in found) else None

    @classmethod
    def _of(cls, size: int, kernel: int, stride: int, pad: int, extent: int) -> _Axis:
        front = -pad % stride
        if -(-(front + kernel) // stride) > -(-kernel // stride):
            front = 0  # starting with a whole group of results would need one more tap
        taps = -(-(front + kernel) // stride)
        first, start = divmod(pad + front, stride)
        before, groups = taps - 1 - first, -(-(start + extent) // stride)
        after = groups - size - before + taps - 1
        return cls(stride, kernel, front, taps, before, after, start, extent)

    @property
    def behind(self) -> int:
        """Zeros behind the taps."""
        return self.taps * self.stride - self.front - self.kernel

    @property
    def is_cut(self) -> bool:
        """Whether the Conv makes more than the results."""
        return bool(self.start or (self.start + self.extent) % self.stride)


@dataclass(frozen=True)
class _Shuffle:
    """Channels of a Conv that are neighbouring results: [groups, *strides, columns]."""

    groups: int
    strides: list[int]

    def written(
        self, emit: Emitter, w: Real, bias: list[np.ndarray], axes: list[_Axis]
    ) -> list[NodeProto]:
        """The Conv, and the nodes that interleave its channels."""
        given = [emit.input(0), self._weight(emit, w, axes)]
        given += [self._constant(emit, *bias)] if bias else []
        pads = [one.before for one in axes] + [one.after for one in axes]
        group = self.groups if self.groups > 1 else None
        result = self._in_order(emit, emit("Conv", *given, pads=pads, group=group), axes)
        return [*emit.nodes, helper.make_node("Identity", [result], [emit.node.output[0]])]

    def _weight(self, emit: Emitter, w: Real, axes: list[_Axis]) -> str:
        """The weight [channels, columns, taps] as [neighbouring results, channels, taps]."""
        known = np.asarray(emit.graph.value(w.data))
        columns, rank = known.shape[1], len(axes)
        zero = w.zero.astype(known.dtype).reshape((-1,) + (1,) * rank)
        room = [(0, 0), (0, 0)] + [(one.front, one.behind) for one in axes]
        inside = np.pad(np.ones_like(known, bool), room)
        filled = np.where(inside, np.pad(known, room), zero)
        split = [size for one in axes for size in (one.taps, one.stride)]
        parts = filled.reshape(self.groups, -1, columns, *split)
        parts = np.flip(parts, tuple(range(3, 3 + 2 * rank, 2)))
        over, steps = (range(at, 3 + 2 * rank, 2) for at in (3, 4))
        parts = parts.transpose(0, *steps, 2, 1, *over)
        taps = [one.taps for one in axes]
        turned = parts.reshape(self.groups * prod(self.strides) * columns, -1, *taps)
        return self._integers(emit, turned, w.kind, w.scale, w.zero)

    def _constant(self, emit: Emitter, bias: np.ndarray, scale: np.ndarray | None = None) -> str:
        """A bias as a constant; if it has a scale, as dequantised integers."""
        values = self._spread(emit, bias)
        if scale is None:
            return emit.constant(values)
        return self._integers(emit, values, INT32, scale, np.zeros(scale.shape))

    def _integers(
        self, emit: Emitter, values: np.ndarray, kind: int, scale: np.ndarray, zero: np.ndarray
    ) -> str:
        """Dequantised integers with one scale for all, or one for each column."""
        whole = scale.size == zero.size == 1
        scale, zero = (
            one.reshape(()) if whole else self._spread(emit, one) for one in (scale, zero)
        )
        given = [emit.constant(values, kind), emit.constant(scale), emit.constant(zero, kind)]
        return emit("DequantizeLinear", *given, axis=None if whole else 0)

    def _spread(self, emit: Emitter, given: np.ndarray) -> np.ndarray:
        """One value for all columns, or one for each, repeated for the channels of the Conv."""
        by_group = np.resize(given, self._columns(emit)).reshape(self.groups, 1, -1)
        return np.repeat(by_group, prod(self.strides), 1).reshape(-1)

    def _columns(self, emit: Emitter) -> int:
        return emit.shape(emit.node.output[0])[1]

    def _in_order(self, emit: Emitter, name: str, axes: list[_Axis]) -> str:
        """Interleave channels of a Conv to neighbouring results; channels come last meanwhile."""
        rank, (batch, channels) = len(axes), emit.shape(emit.node.output[0])[:2]
        sizes = [-(-(one.start + one.extent) // one.stride) for one in axes]
        last = emit("Transpose", name, perm=[0, *range(2, rank + 2), 1])
        columns = channels // self.groups
        apart = emit.reshape(last, batch, *sizes, self.groups, *self.strides, columns)
        pairs = chain.from_iterable((1 + at, 2 + rank + at) for at in range(rank))
        beside = emit("Transpose", apart, perm=[0, *pairs, 1 + rank, 2 + 2 * rank])
        whole = [size * one.stride for size, one in zip(sizes, axes, strict=True)]
        made = emit.reshape(beside, batch, *whole, channels)
        made = emit("Transpose", made, perm=[0, rank + 1, *range(1, rank + 1)])
        for at, one in enumerate(axes):
            if one.is_cut:
                made = emit.slice(made, at + 2, one.start, one.start + one.extent)
        return made
