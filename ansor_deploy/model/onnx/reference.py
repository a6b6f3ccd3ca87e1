"""ONNX's reference implementation of one node.

Making ONNX's evaluator of a graph for it takes five times as long, and a model may compute its
shapes by thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from .skeleton import domain_of


def run_reference(
    node: NodeProto, inputs: Sequence[np.ndarray | None], opset: int
) -> list[np.ndarray]:
    """The results of a standard node without graphs in it.

    inputs: in the node's order, None where it leaves one out. opset: the version of the operator.
    """
    from onnx.reference import ReferenceEvaluator  # slow to import
    from onnx.reference.ops import load_op

    operator = load_op(domain_of(node), node.op_type, opset, evaluator_cls=ReferenceEvaluator)
    settings = {"opsets": {"": opset}, "new_ops": None, "log": lambda *_: None}
    return list(operator(node, settings).run(*inputs))
