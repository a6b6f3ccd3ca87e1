"""The activations of a model as its library computes them: float32, or bytes in blocks."""

from onnx import AttributeProto, ModelProto, NodeProto

from ..onnx.skeleton import attribute, nodes, with_initializers

# The attribute that says how precisely rows are multiplied; values between these are for 16 bits.
_LEVEL = "accuracy_level"
# Its value for float32.
_FLOAT32 = 1
# Its value for bytes.
_BYTES = 4


def in_float32(proto: ModelProto) -> ModelProto:
    """The model without permission to multiply 16-bit numbers; unchanged if it gives none.

    A library that computes in float32 must not count as wrong by the roundings that ONNX Runtime
    adds. Where bytes are allowed, both multiply bytes (`operators/rounded_products.py`).
    """
    if not _leaves(proto):
        return proto
    exact = with_initializers(proto, proto.graph.initializer)
    for entry in _leaves(exact):
        entry.i = _FLOAT32
    return exact


def rounds_rows(proto: ModelProto) -> bool:
    """Whether rows of products are rounded to bytes, so that close sums may round differently."""
    return any(_level(node) == _BYTES for node in nodes(proto.graph))


def _level(node: NodeProto) -> int:
    return attribute(node, _LEVEL, 0) if node.op_type == "MatMulNBits" else 0


def _leaves(proto: ModelProto) -> list[AttributeProto]:
    found = (node for node in nodes(proto.graph) if node.op_type == "MatMulNBits")
    return [
        e for node in found for e in node.attribute if e.name == _LEVEL and _FLOAT32 < e.i < _BYTES
    ]
