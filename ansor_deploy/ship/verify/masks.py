"""Inputs that say which tokens count, of which random numbers would be no mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_COUNTS = 5  # the input of GroupQueryAttention that has the counts of keys


def masks(proto: onnx.ModelProto) -> set[str]:
    """The inputs of which a decoder's counts of keys are computed.

    A cache is to be as long as tokens are given for it: ones in all of a mask say so.
    """
    known = [node for node in proto.graph.node if node.op_type == "GroupQueryAttention"]
    counts = {node.input[_COUNTS] for node in known}
    wanted = set(counts)
    for node in reversed(proto.graph.node):
        if node.op_type != "Shape" and not wanted.isdisjoint(node.output):
            wanted.update(node.input)
    return {value.name for value in proto.graph.input} & (wanted - counts)
