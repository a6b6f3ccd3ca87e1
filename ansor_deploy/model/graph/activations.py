"""A model in which activations are float32, or bytes in blocks, as they are in a library."""

from onnx import AttributeProto, ModelProto, NodeProto

from ..onnx.skeleton import attribute, nodes, with_initializers

# Levels of accuracy: of float32, and of bytes. Between them are those of 16 bits.
_LEVEL, _FLOAT32, _BYTES = "accuracy_level", 1, 4


def in_float32(proto: ModelProto) -> ModelProto:
    """The model without the leave to multiply numbers of 16 bits; itself if it gives none.

    A library that keeps to the numbers is not to be wrong by the rounding that ONNX Runtime adds.
    Bytes are what both multiply (`operators/rounded_products.py`).
    """
    if not _leaves(proto):
        return proto
    exact = with_initializers(proto, proto.graph.initializer)
    for entry in _leaves(exact):
        entry.i = _FLOAT32
    return exact


def rounds_rows(proto: ModelProto) -> bool:
    """Whether rows of products are rounded to bytes: decisions, as those of a quantised model."""
    return any(_level(node) == _BYTES for node in nodes(proto.graph))


def _level(node: NodeProto) -> int:
    return attribute(node, _LEVEL, 0) if node.op_type == "MatMulNBits" else 0


def _leaves(proto: ModelProto) -> list[AttributeProto]:
    found = (node for node in nodes(proto.graph) if node.op_type == "MatMulNBits")
    return [
        e for node in found for e in node.attribute if e.name == _LEVEL and _FLOAT32 < e.i < _BYTES
    ]
