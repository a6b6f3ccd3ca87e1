"""Quantised weights of a file, which DequantizeLinear, or a Cast and a Mul, converts to float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto

from ..onnx.skeleton import attribute


@dataclass(frozen=True, eq=False)
class Dequantised:
    """Weights as constants of a file: steps, scales and, rarely, zero points.

    axis: the axis along which each index has a scale; with a size, each block of `size` steps.
    """

    steps: TensorProto
    scales: TensorProto
    zeros: TensorProto | None
    axis: int
    size: int = 0

    @property
    def is_of_channels(self) -> bool:
        """Whether they can be convolution weights with a scale for each channel, or one for all."""
        of_float32 = self.scales.data_type == TensorProto.FLOAT
        return len(self.steps.dims) > 2 and not self.size and of_float32


def dequantised(model: ModelProto) -> Iterator[Dequantised]:
    """The quantised weights of a model."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    casts = {n.output[0]: tensors.get(n.input[0]) for n in model.graph.node if n.op_type == "Cast"}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear":
            found = _by_operator(node, tensors)
        else:
            found = _written_out(node, tensors, casts) if node.op_type == "Mul" else None
        if found is not None:
            yield found


def _by_operator(node: NodeProto, tensors: Mapping[str, TensorProto]) -> Dequantised | None:
    steps, scales, *others = (tensors.get(name) for name in node.input if name)
    if steps is None or scales is None or None in others:
        return None
    axis = attribute(node, "axis", 1) % max(1, len(steps.dims))
    zeros = others[0] if others else None
    return Dequantised(steps, scales, zeros, axis, attribute(node, "block_size", 0))


def _written_out(
    node: NodeProto,
    tensors: Mapping[str, TensorProto],
    casts: Mapping[str, TensorProto | None],
) -> Dequantised | None:
    """The product of a constant that was cast and of scales that vary along one axis at most."""
    for made, name in (node.input, reversed(node.input)):
        steps, scales = casts.get(made), tensors.get(name)
        if steps is None or scales is None or len(scales.dims) > len(steps.dims):
            continue
        behind = len(steps.dims) - len(scales.dims)
        wide = [behind + at for at, extent in enumerate(scales.dims) if extent > 1]
        if len(wide) <= 1:
            return Dequantised(steps, scales, None, wide[0] if wide else 0)
    return None
