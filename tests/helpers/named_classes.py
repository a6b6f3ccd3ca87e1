"""Classifiers as scikit-learn's exporters write them, with maps and text labels."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, NodeProto, TensorProto, helper

from helpers.graphs import randn

NAMES = ("cat", "dog", "owl")


def scores(count: int) -> NodeProto:
    """A classifier with scores of so many classes, whose labels are text."""
    words = {"coefficients": randn(1, 6 * count).tolist(), "intercepts": randn(2, count).tolist()}
    words |= {"classlabels_strings": NAMES[:count], "domain": "ai.onnx.ml"}
    return helper.make_node("LinearClassifier", ["x"], ["label", "score"], **words)


def zip_map(**labels: Sequence[int] | Sequence[str]) -> NodeProto:
    return helper.make_node("ZipMap", ["score"], ["maps"], domain="ai.onnx.ml", **labels)


def model(
    *nodes: NodeProto,
    maps: int = TensorProto.STRING,
    text: str = "text",
    weights: Sequence[TensorProto] = (),
) -> ModelProto:
    """A model whose outputs are maps, of labels of a type, and text; either may be left out."""
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    row = helper.make_map_type_proto(maps or TensorProto.STRING, kind)
    outputs = [helper.make_value_info("maps", helper.make_sequence_type_proto(row))] if maps else []
    if text:
        outputs.append(helper.make_tensor_value_info(text, TensorProto.STRING, None))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, (9, 6))
    graph = helper.make_graph(list(nodes), "classes", [given], outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def by_label() -> ModelProto:
    """A classifier as skl2onnx writes it, which passes on its operator's label."""
    moved = helper.make_node("Identity", ["label"], ["text"])
    return model(scores(3), moved, zip_map(classlabels_strings=NAMES))
