"""First axes that are no batch, although no name says so: as many rows as there are, together.

A detector scatters pillars of points into one image, and a layer of a graph adds up neighbours: an
input has rows on its first axis, and the exporter calls it M, or s33. It is a set if no result of
the model has that axis, or if a node picks or places rows along it, or adds them up. It then gets a
name that says so, as other exporters give it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, shape_inference

from .bind import declared_shape, model_inputs
from .skeleton import attribute, skeleton
from .usual_sizes import UNNAMED, is_of_batch, is_of_image, is_of_time

Dims = tuple[int | str, ...]
_UNKNOWN: Dims = ()
_NAMED = "_points"  # what is put behind the name


def name_sets(proto: ModelProto) -> None:
    """Give first axes of a model that are sets names that say so."""
    firsts = {name for name in map(_unclear, model_inputs(proto)) if name}
    if firsts:
        with suppress(shape_inference.InferenceError, ValueError):  # a fault is named later
            _rename(proto, _sets(shape_inference.infer_shapes(skeleton(proto)).graph, firsts))


def _sets(graph: GraphProto, firsts: set[str]) -> set[str]:
    """Those of some names of axes that are of sets."""
    values = [*graph.input, *graph.value_info, *graph.output]
    shapes = {value.name: shape for value in values if (shape := declared_shape(value))}
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    mixed = {name for node in graph.node for name in _mixed(node, shapes)}
    found = {name for name in firsts if name in mixed}
    known = {name for value in graph.input for name in shapes.get(value.name, ())}
    results = {size for value in graph.output for size in shapes.get(value.name, ("?",))}
    if all(isinstance(size, int) or size in known for size in results):
        found |= {name for name in firsts if name not in results}
    return found


def _unclear(value: ValueInfoProto) -> str:
    """The name of the first axis if it says nothing, of an input with several axes; else ""."""
    shape = declared_shape(value) or ()
    name = shape[0] if len(shape) > 1 and not is_of_image(value) else 0
    if not isinstance(name, str) or name.startswith(UNNAMED):
        return ""
    return "" if is_of_batch(name) or is_of_time(name) else name


def _mixed(node: NodeProto, shapes: Mapping[str, Dims]) -> Iterator[int | str]:
    """The sizes along which a node picks, places or adds up elements of several rows."""
    given = [shapes.get(name, _UNKNOWN) for name in node.input]
    data, *others = given + [_UNKNOWN] * 2
    axis = attribute(node, "axis", 0)
    if node.op_type == "Gather" and others[0] and -len(data) <= axis < len(data):
        yield data[axis]
    alone = others[0][-1:] == (1,) and not attribute(node, "batch_dims", 0)
    if node.op_type in ("GatherND", "ScatterND") and alone:  # else each row may pick of its own
        yield from data[:1]
    if node.op_type == "ScatterND":
        yield from (size for one in others for size in one if size not in data)
    if node.op_type in ("GatherElements", "ScatterElements") and -len(data) <= axis < len(data):
        yield from (one[axis] for one in given if len(one) == len(data))
    if node.op_type == "MatMul" and data:
        yield data[-1]


def _rename(proto: ModelProto, found: Collection[str]) -> None:
    """Give these axes other names."""
    for value in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in found:
                dim.dim_param += _NAMED
