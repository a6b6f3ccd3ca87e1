"""What operators of ONNX Runtime make is declared, so that ONNX infers what follows."""

import numpy as np
import onnx
import pytest
from helpers.graphs import contrib, model, node, randn, random_feeds, run, typed
from onnx import TensorProto, helper

from ansor_deploy.model.canonicalize import canonical_graph, canonicalize
from ansor_deploy.model.graph.cuts import Graph
from ansor_deploy.model.graph.foreign import declare_foreign
from ansor_deploy.model.graph.noise import with_noise
from ansor_deploy.model.onnx.bind import at_all_sizes, bind_shapes, declared_shape


def test_noise_and_cuts_go_beyond_operators_that_onnx_does_not_know():
    gelu = contrib("QuickGelu", "x", "a")
    nodes = [gelu, node("MatMul", "a w", "b"), node("SimplifiedLayerNormalization", "b s", "c"),
             node("Exp", "c", "y")]  # fmt: skip
    weights = {"w": randn(0, 8, 4), "s": randn(1, 4)}
    proto = typed(nodes, {"x": ("float32", ("n", 8))}, {"y": "float32"}, weights)
    proto = bind_shapes(proto, {"x": (3, 8)})
    assert Graph(proto).shown == {}
    declare_foreign(proto, canonical_graph(proto), shapes=True)
    assert Graph(proto).shown == {0: "a", 1: "b", 2: "c", 3: "y"}
    inexact = [one.op_type for one in with_noise(proto, 0).graph.node]
    assert inexact.count("RandomUniformLike") >= 5
    assert len(onnx.shape_inference.infer_shapes(proto, strict_mode=True).graph.value_info) == 3


@pytest.mark.parametrize(("opset", "scales"), [(18, 3), (21, 6)])
def test_group_normalization_of_which_onnx_infers_no_shape(opset, scales):
    made = node("GroupNormalization", "x s b", "n", num_groups=3, epsilon=1e-3)
    nodes = [made, node("Transpose", "n", "t", perm=[0, 2, 1]), node("Exp", "t", "y")]
    constants = {"s": randn(0, scales), "b": randn(1, scales)}
    proto = model(nodes, {"x": (2, 6, 5)}, constants=constants, opset=opset)
    feeds = random_feeds(proto)
    want, have = run(proto, feeds), run(canonicalize(proto), feeds)
    np.testing.assert_allclose(have[0], want[0], rtol=1e-5)
    declare_foreign(proto, canonical_graph(proto), shapes=True)
    assert Graph(proto).shown == {0: "n", 1: "t", 2: "y"}


def test_shapes_that_follow_from_what_constants_come_to_are_known_to_cuts():
    """As exporters write pads: a list that nodes put together, of which ONNX infers no values."""
    nodes = [
        node("ConstantOfShape", "two", "zeros"),
        node("Concat", "three zeros one", "pads", axis=0),
        node("Pad", "x pads", "p"),
        node("Exp", "p", "y"),
    ]
    zero = helper.make_tensor("zero", TensorProto.INT64, [1], [0])
    nodes[0].attribute.append(helper.make_attribute("value", zero))
    constants = {"two": np.array([2]), "three": np.array([3]), "one": np.array([1])}
    proto = model(nodes, {"x": (2, 4)}, constants=constants)
    del proto.graph.value_info[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert Graph(proto).shown == {2: "p", 3: "y"}


def test_what_is_declared_of_one_size_is_open_in_a_model_of_all_sizes():
    nodes = [contrib("QuickGelu", "x", "a"), node("Abs", "a", "y")]
    proto = typed(nodes, {"x": ("float32", ("n", 8))}, {"y": "float32"})
    bound = [bind_shapes(proto, {"x": (rows, 8)}) for rows in (5, 3)]
    for one in bound:
        declare_foreign(one, canonical_graph(one), shapes=True)
    whole = at_all_sizes(bound)
    (declared,) = whole.graph.value_info
    assert (declared.name, declared_shape(declared)) == ("a", ("?", "?"))
    assert declared_shape(whole.graph.input[0]) == ("?", 8)
