"""Writes stripes.onnx, a model that recognises the direction of stripes in a 16x16 grey image.

It has four pairs of edge filters, the mean of each filter's positive answers, and a score for each
direction. The weights are set by hand, so nothing needs to be trained.

    python stripes_model.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 16
DIRECTIONS = ("horizontal", "vertical", "falling", "rising")

_ACROSS = np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]], np.float32)
_DIAGONAL = np.array([[0, 1, 2], [-1, 0, 1], [-2, -1, 0]], np.float32)


def stripes() -> onnx.ModelProto:
    """image: float32 [1, 1, 16, 16] --> probabilities: float32 [1, 4], in order of DIRECTIONS."""
    edges = np.stack([_ACROSS, _ACROSS.T, _DIAGONAL, np.fliplr(_DIAGONAL)])
    filters = np.concatenate([edges, -edges])[:, None]
    scores = np.concatenate([np.eye(4), np.eye(4)]).astype(np.float32) * 4
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["edges"]),
        helper.make_node("Relu", ["edges"], ["strengths"]),
        helper.make_node("GlobalAveragePool", ["strengths"], ["means"]),
        helper.make_node("Flatten", ["means"], ["features"]),
        helper.make_node("MatMul", ["features", "scores"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        nodes,
        "stripes",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 1, SIZE, SIZE))],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, (1, 4))],
        [numpy_helper.from_array(filters, "filters"), numpy_helper.from_array(scores, "scores")],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


if __name__ == "__main__":
    onnx.save(stripes(), Path(__file__).with_name("stripes.onnx"))
