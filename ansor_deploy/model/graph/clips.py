"""Write clips between constants in one form, whatever form the exporter chose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto, helper

from ..onnx.skeleton import attribute
from .graph import FLOATS, Graph, is_op, optional_input


@dataclass(frozen=True)
class Clip:
    """min(max(data, low), high); a bound is infinite if there is none."""

    data: str
    low: float
    high: float

    def after(self, first: Clip) -> Clip:
        """Both clips as one: a clip is monotone, so it maps the first one's bounds to bounds."""
        return Clip(first.data, self._apply(first.low), self._apply(first.high))

    def _apply(self, value: float) -> float:
        return min(max(value, self.low), self.high)


def scalar_clips(graph: Graph) -> None:
    """Min(Max(x, 0), 6) --> Clip(x, 0, 6); Clip(Relu(x), high=6) --> Clip(x, 0, 6).

    Clip(x, 0) --> Relu(x); Clip(x) --> x. The bounds of a Clip that stays are scalar constants
    (before opset 11: attributes), none of them NaN or infinite.
    """
    consumers, found = graph.consumers(), dict[str, Clip]()
    for node in list(graph.nodes):
        clip = clip_of(graph, node)
        if clip is None or not graph.dtypes.get(clip.data):  # inference may not know the type
            continue
        first = found.get(clip.data)
        if first and len(consumers[clip.data]) == 1 and clip.data not in graph.output_names:
            clip = clip.after(first)
        found[node.output[0]] = clip
        graph.replace(node, [_write(graph, node, clip)])


def clip_of(graph: Graph, node: NodeProto) -> Clip | None:
    """The Clip that equals a Clip, Relu, Max or Min with constant bounds; None for other nodes."""
    if is_op(node, "Relu"):
        return Clip(node.input[0], 0, np.inf)
    if is_op(node, "Max", "Min") and len(node.input) == 2:
        return _of_extremum(graph, node)
    if not is_op(node, "Clip"):
        return None
    low = _bound(graph, node, 1, "min", -np.inf)
    high = _bound(graph, node, 2, "max", np.inf)
    # If the lower bound is above the upper one, it has no effect: Clip is Min of Max.
    return None if low is None or high is None else Clip(node.input[0], min(low, high), high)


def _of_extremum(graph: Graph, node: NodeProto) -> Clip | None:
    left, right = node.input
    data, constant = (right, left) if left in graph.constants else (left, right)
    value = graph.value(constant)
    if data in graph.constants or value is None or value.size != 1 or np.isnan(value).any():
        return None
    is_clippable = graph.opset >= 12 or graph.dtypes.get(data) in FLOATS
    if not is_clippable or value.ndim > len(graph.shapes.get(data, ())):
        return None
    bound = value.item()
    return Clip(data, bound, np.inf) if node.op_type == "Max" else Clip(data, -np.inf, bound)


def _bound(graph: Graph, node: NodeProto, index: int, name: str, absent: float) -> float | None:
    """A bound of a Clip node; None if it is computed. NaN is no bound, as in ONNX Runtime."""
    bound = attribute(node, name, absent)  # before opset 11
    if given := optional_input(node, index):
        value = graph.value(given)
        if value is None or value.size != 1:
            return None
        bound = value.item()
    return absent if np.isnan(bound) else bound


def _write(graph: Graph, node: NodeProto, clip: Clip) -> NodeProto:
    dtype = graph.dtypes.get(clip.data, TensorProto.UNDEFINED)
    bounds = {"min": clip.low, "max": clip.high}
    finite = {name: bound for name, bound in bounds.items() if abs(bound) < np.inf}
    if not finite:
        return _node("Identity", node, clip.data)
    if finite == {"min": 0} and (dtype in FLOATS or node.op_type == "Relu"):
        return _node("Relu", node, clip.data)
    if graph.opset < 11:
        return _node("Clip", node, clip.data, **finite)
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    made = {
        name: graph.add_constant(np.array(bound, kind), f"{node.output[0]}_{name}")
        for name, bound in finite.items()
    }
    low, high = made.get("min", ""), made.get("max")
    return _node("Clip", node, clip.data, *([low, high] if high else [low]))


def _node(op: str, old: NodeProto, *inputs: str, **attributes: float) -> NodeProto:
    return helper.make_node(op, list(inputs), list(old.output), name=old.name, **attributes)
