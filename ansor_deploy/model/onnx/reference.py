"""ONNX's reference implementation of one node, and two operators that it computes less well.

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


def gather_elements(data: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """For each row along the axis, the elements that are asked for.

    The reference implementation refuses to take more of them than the row has. Along other axes the
    indices may have fewer rows than the data.
    """
    along = axis + data.ndim if axis < 0 else axis
    rows = (slice(None) if at == along else slice(n) for at, n in enumerate(indices.shape))
    return np.take_along_axis(data[tuple(rows)], indices, axis)


def scatter_rows(data: np.ndarray, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The data with rows replaced at places: at once, where the reference takes one by one.

    Vision transformers make a table of hundreds of thousands of relative positions like this.
    """
    made = data.copy()
    made[tuple(np.moveaxis(places, -1, 0))] = rows
    return made
