"""Fourier transforms as exporters write them; each form of them is among ONNX's own node tests."""

import numpy as np
from helpers.built import assert_like_oracle
from helpers.graphs import model, node
from onnx import TensorProto, helper

from ansor_deploy.model.operators.support import refuse_early


def test_the_axis_may_be_computed_from_constants():
    """As in FNet, where it is a negative number that the exporter wraps around."""
    nodes = [
        node("Unsqueeze", "x last", "pairs"),
        node("Add", "axis rank", "wrapped"),
        transform("pairs", "wrapped", "y"),
    ]
    constants = {"last": np.array([3]), "axis": np.int64(-3), "rank": np.int64(4)}
    proto = model(nodes, {"x": (1, 6, 5)}, constants=constants, opset=20)
    wrapped = helper.make_tensor_value_info("wrapped", TensorProto.INT64, ())
    proto.graph.value_info.append(wrapped)  # exporters note the type of each value
    refuse_early(proto)
    assert_like_oracle(proto)


def transform(data, axis, result):
    """The node without a length, which is the second input."""
    made = node("DFT", f"{data} {axis}", result)
    made.input[:] = [data, "", axis]
    return made
