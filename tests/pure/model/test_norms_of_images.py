"""A norm of a whole image, written between two reshapes, is computed where it lies."""

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, randn
from onnx.shape_inference import infer_shapes

from ansor_deploy.model.canonicalize import canonicalize


@pytest.mark.parametrize("size", [4, 160])
def test_nothing_is_reshaped(size):
    norm = [("Reshape", "x flat", "f"), ("InstanceNormalization", "f one zero", "n")]
    after_it = [("Reshape", "n back", "r"), ("Mul", "r s", "m"), ("Add", "m s", "y")]
    nodes = [node(*words) for words in (*norm, *after_it)]
    constants = {"flat": np.array([0, 1, -1]), "back": np.array([2, 3, size, size])}
    constants |= {"one": np.ones(1, np.float32), "zero": np.zeros(1, np.float32)}
    constants["s"] = randn(0, 3, 1, 1)
    proto = model(nodes, {"x": (2, 3, size, size)}, constants=constants)
    after = canonicalize(proto)
    reshaped = {n.output[0] for n in after.graph.node if n.op_type == "Reshape"}
    made = {v.name: v.type.tensor_type.shape for v in infer_shapes(after).graph.value_info}
    assert all(len(made[name].dim) == 4 for name in reshaped)
    assert_same(proto, after, 1e-5)
