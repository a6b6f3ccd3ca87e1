"""How far a quantised model is from the float one, and which layers cause most of that.

The share of a layer is how much smaller the error would be if only this layer stayed in float32. To
measure it, the quantised model gets a switch for each layer. It restores the layer's float weights,
and each activation that only this layer has quantised. All switches are inputs of one session:

    W_quantized -> DequantizeLinear -> Where(switch, W, .) -> Conv
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ..ship.quantised import Distance, Layer
from ..ship.verify.onnx_runtime import open_session

if TYPE_CHECKING:
    from .graph import Ready
    from .samples import Sample

Progress = Callable[[str, int, int], object]  # called with a name, what is done, and the total
COMPARED = 64  # the most samples on which outputs are compared
LAYER_SAMPLES = 8  # the most samples on which layers are compared
SECONDS = 20.0  # the time for each of both, after which fewer samples suffice
MOST_LAYERS = 50  # the most layers that are listed
_SUFFIX = "_quantized"  # the quantiser appends it to the names of weights
_BYTES = ("QuantizeLinear", "DequantizeLinear")


@dataclass
class Sums:
    """Sums over samples of an output: squared differences and values, and rows compared."""

    noise: float = 0.0
    signal: float = 0.0
    largest: float = 0.0
    same: int = 0
    rows: int = 0

    def add(self, found: np.ndarray, truth: np.ndarray) -> None:
        """Add a sample: its output from the quantised model, and from the float model."""
        off = found.astype("float64") - truth.astype("float64")
        self.noise += float(np.square(off).sum())
        self.signal += float(np.square(truth.astype("float64")).sum())
        self.largest = max(self.largest, float(np.abs(off).max(initial=0.0)))
        if truth.ndim and truth.shape[-1] > 1:
            same = np.argmax(found, axis=-1) == np.argmax(truth, axis=-1)
            self.same, self.rows = self.same + int(same.sum()), self.rows + same.size

    @property
    def part(self) -> float | None:
        """The noise divided by the signal; None if that is not meaningful."""
        return self.noise / self.signal if self.signal and math.isfinite(self.noise) else None

    def distance(self, name: str) -> Distance:
        """The distance in the form in which it is stored."""
        rms = None if self.part is None else math.sqrt(self.part)
        top = self.same / self.rows if self.rows else None
        return Distance(name, rms, self.largest if math.isfinite(self.largest) else None, top)


class Compared:
    """A float model and its quantised one, to be compared on samples. names: of the outputs."""

    def __init__(self, ready: Ready, made: ModelProto) -> None:
        self.names = [value.name for value in made.graph.output]
        # Nothing is fused, so that ties are rounded as ONNX says.
        self._float = open_session(ready.path, 0, as_written=True)
        switched, self._nodes = with_switches(made, ready.proto)
        self._made = open_session(switched.SerializeToString(), 0, as_written=True)
        self._ready = ready

    def distances(self, samples: Sequence[Sample]) -> tuple[int, list[Distance]]:
        """How many samples were compared, and the distance of each output."""
        sums, compared = [Sums() for _ in self.names], 0
        for sample in in_time(spread(samples, COMPARED)):
            compared += 1
            for one, found, truth in zip(
                sums, self._run(sample), self._float.run(self.names, sample), strict=True
            ):
                one.add(found, truth)
        return compared, [one.distance(name) for one, name in zip(sums, self.names, strict=True)]

    def layers(
        self, samples: Sequence[Sample], progress: Progress = lambda what, done, total: None
    ) -> list[Layer]:
        """The layers with the largest shares of the error, the largest first."""
        began = time.monotonic()
        truths = [(one, self._float.run(self.names, one)) for one in samples[:1]]
        whole = self._cost(truths, None)
        taken = (time.monotonic() - began) * max(1, len(self._nodes))
        if len(chosen := spread(samples, max(1, min(LAYER_SAMPLES, int(SECONDS / taken))))) > 1:
            truths = [(one, self._float.run(self.names, one)) for one in chosen]
            whole = self._cost(truths, None)
        if not whole:
            return []
        shares = {}
        for at, name in enumerate(self._nodes):
            progress("layers", at, len(self._nodes))
            shares[name] = 1 - self._cost(truths, name) / whole
        ranked = sorted(shares.items(), key=lambda one: -one[1])[:MOST_LAYERS]
        return [self._layer(name, share) for name, share in ranked if share > 0]

    def _layer(self, node: str, share: float) -> Layer:
        return Layer(self._ready.layer(node), self._nodes[node], share)

    def _cost(self, truths: Iterable[tuple[Sample, list[Any]]], node: str | None) -> float:
        """The sum over outputs of noise divided by signal, with one node left in float32."""
        sums = [Sums() for _ in self.names]
        for sample, truth in truths:
            for one, found, right in zip(sums, self._run(sample, node), truth, strict=True):
                one.add(found, right)
        return sum(one.part or 0.0 for one in sums)

    def _run(self, sample: Sample, node: str | None = None) -> list[Any]:
        switches = {switch(name): np.asarray(name == node) for name in self._nodes}
        found: list[Any] = self._made.run(self.names, {**sample, **switches})
        return found


def spread(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most this many of the samples, evenly spaced."""
    step = max(1.0, len(samples) / most)
    return [samples[int(at * step)] for at in range(min(most, len(samples)))]


def in_time(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Samples until the time is over, but at least one."""
    end = time.monotonic() + SECONDS
    for sample in samples:
        yield sample
        if time.monotonic() > end:
            return


def switch(node: str) -> str:
    """The name of the input that leaves a node in float32."""
    return f"{node}:in_float32"


@dataclass
class _Owners:
    """The nodes that have a tensor quantised. nodes: operators between conversions, by name."""

    graph: Any
    nodes: dict[str, str] = field(default_factory=dict)
    of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        """Find for each quantised tensor the nodes that read it dequantised, or make it."""
        dequantised = {
            one.output[0]: one.input[0] for one in self.graph.node if one.op_type == _BYTES[1]
        }
        quantised = {
            one.input[0]: one.output[0] for one in self.graph.node if one.op_type == _BYTES[0]
        }
        for node in self.graph.node:
            if node.op_type in _BYTES:
                continue
            touched = {dequantised[name] for name in node.input if name in dequantised}
            touched |= {quantised[name] for name in node.output if name in quantised}
            for name in touched:
                self.of[name].add(node.name)
                self.nodes[node.name] = node.op_type


def with_switches(made: ModelProto, before: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """A quantised model with a switch for each layer, and the layers' operators by name.

    before: the float model that it was made from.
    """
    switched = ModelProto()
    switched.CopyFrom(made)
    graph, owners = switched.graph, _Owners(made.graph)
    floats = _floats(made.graph.node, before)
    nodes: list[NodeProto] = []
    layers: dict[str, str] = {}
    for node in list(graph.node):
        nodes.append(node)
        owner = owners.of[node.input[0]] if node.op_type == _BYTES[1] else set()
        if len(owner) == 1 and (source := floats.get(node.input[0])):
            (name,) = owner
            layers[name] = owners.nodes[name]
            nodes.append(_chosen(node, name, source))
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    for weight in before.graph.initializer:
        if _as_it_was(weight.name) in floats.values():
            graph.initializer.add().CopyFrom(weight)
            graph.initializer[-1].name = _as_it_was(weight.name)
    for name in layers:
        graph.input.append(helper.make_tensor_value_info(switch(name), TensorProto.BOOL, []))
    return switched, layers


def _floats(nodes: Iterable[NodeProto], before: ModelProto) -> Mapping[str, str]:
    """For each quantised tensor the float one: an activation, or the original weight."""
    weights = {
        f"{one.name}{_SUFFIX}": _as_it_was(one.name)
        for one in before.graph.initializer
        if one.data_type == TensorProto.FLOAT
    }
    activations = {one.output[0]: one.input[0] for one in nodes if one.op_type == _BYTES[0]}
    return {**activations, **weights}


def _as_it_was(weight: str) -> str:
    return f"{weight}:float32"


def _chosen(node: NodeProto, layer: str, source: str) -> NodeProto:
    """A node that chooses between a dequantised tensor and the float tensor before it."""
    result = node.output[0]
    node.output[0] = f"{result}:of_bytes"
    return helper.make_node("Where", [switch(layer), source, node.output[0]], [result])
