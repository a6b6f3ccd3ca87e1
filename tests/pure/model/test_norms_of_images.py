"""A norm of groups of channels, written between two reshapes, is computed where the image lies."""

import math

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, randn
from onnx.shape_inference import infer_shapes

from ansor_deploy.model.canonicalize import canonicalize


@pytest.mark.parametrize(("size", "groups"), [(4, 1), (160, 1), (4, 3)])
def test_no_image_is_reshaped(size, groups):
    norm = [("Reshape", "x flat", "f"), ("InstanceNormalization", "f one zero", "n")]
    after_it = [("Reshape", "n back", "r"), ("Mul", "r s", "m"), ("Add", "m s", "y")]
    nodes = [node(*words) for words in (*norm, *after_it)]
    constants = {"flat": np.array([0, groups, -1]), "back": np.array([2, 6, size, size])}
    constants |= {"one": randn(1, groups), "zero": randn(2, groups), "s": randn(0, 6, 1, 1)}
    proto = model(nodes, {"x": (2, 6, size, size)}, constants=constants)
    after = canonicalize(proto)
    reshaped = {n.output[0] for n in after.graph.node if n.op_type == "Reshape"}
    made = {v.name: v.type.tensor_type.shape for v in infer_shapes(after).graph.value_info}
    sizes = [math.prod(one.dim_value for one in made[name].dim) for name in reshaped]
    assert all(one < 2 * 6 * size * size for one in sizes)
    assert_same(proto, after, 1e-5)
