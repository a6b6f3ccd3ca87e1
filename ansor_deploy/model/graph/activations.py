"""A model in which activations stay float32, as they do in a library."""

from onnx import AttributeProto, ModelProto

from ..onnx.skeleton import nodes, with_initializers

_LEVEL, _FLOAT32 = "accuracy_level", 1


def in_float32(proto: ModelProto) -> ModelProto:
    """The model without the leave to round what MatMulNBits multiplies; itself if it gives none.

    A library that keeps to the numbers is not to be wrong by the rounding that ONNX Runtime adds.
    """
    if not _leaves(proto):
        return proto
    exact = with_initializers(proto, proto.graph.initializer)
    for entry in _leaves(exact):
        entry.i = _FLOAT32
    return exact


def _leaves(proto: ModelProto) -> list[AttributeProto]:
    found = (node for node in nodes(proto.graph) if node.op_type == "MatMulNBits")
    return [e for node in found for e in node.attribute if e.name == _LEVEL and e.i > _FLOAT32]
