"""What small constants gave when they were folded: equal nodes of equal constants give it again.

A network computes the same sizes in each of its layers, and the search for sizes folds one graph
with many shapes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto

_SMALL = 4096  # bytes of all constants of a node, and of all its results
# What is made of these depends on more than their constants: on outputs, and on the room.
_APART = frozenset(("ConstantOfShape", "Identity"))


class Answers:
    """Results of nodes by their operator, attributes and constants, for one version of ONNX."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Sequence[np.ndarray]] = {}

    def find(self, key: Hashable) -> Sequence[np.ndarray] | None:
        """The results of a key, if they are known."""
        return self._known.get(key)

    def note(self, key: Hashable, results: Sequence[np.ndarray | TensorProto]) -> None:
        """Keep the results of a key if they are small."""
        arrays = [one for one in results if isinstance(one, np.ndarray)]
        if len(arrays) == len(results) and sum(one.nbytes for one in arrays) <= _SMALL:
            self._known[key] = arrays


def key_of(node: NodeProto, constants: Mapping[str, TensorProto]) -> Hashable | None:
    """What decides a node's results; None where that is more than small constants."""
    if node.domain or not node.input or node.op_type in _APART:
        return None
    left, given = _SMALL, list[Hashable]()
    for name in node.input:
        tensor = constants.get(name)
        if name and (tensor is None or not tensor.raw_data or len(tensor.raw_data) > left):
            return None
        if tensor is not None:
            left -= len(tensor.raw_data)
            given.append((tensor.data_type, tuple(tensor.dims), tensor.raw_data))
        else:
            given.append(None)
    words = (one.SerializeToString(deterministic=True) for one in node.attribute)
    return node.op_type, len(node.output), *words, *given
