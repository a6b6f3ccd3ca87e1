"""What the branches of an If compute of constants is computed before them."""

import numpy as np
from helpers.graphs import assert_same, either, model, node, ops, randn
from onnx import helper, numpy_helper

from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.onnx.bind import bind_shapes, declared_shape
from ansor_deploy.model.onnx.skeleton import nested
from ansor_deploy.model.onnx.skeleton import nodes as all_nodes


def choice(then, other, **constants):
    """A model in which the sum of x chooses between two lists of nodes that make r of it."""
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Greater", "total zero", "positive"),
        either("positive", "y", then, other),
    ]
    constants = {"zero": np.float32(0), **constants}
    return model(nodes, {"x": (3,)}, constants=constants)


def test_shapes_that_a_branch_computes_of_constants_are_known():
    """As exporters write how much a Pad adds."""
    padded = [
        node("Shape", "w", "rank"),
        node("ConstantOfShape", "rank", "none", value=numpy_helper.from_array(np.array([0]))),
        node("Slice", "none zeros ones", "before"),
        node("Concat", "before ones", "pads", axis=0),
        node("Pad", "x pads", "wide"),
        node("Slice", "wide zeros threes", "r"),
    ]
    constants = {"w": randn(1, 3), "zeros": np.array([0]), "ones": np.array([1])}
    proto = choice(padded, [node("Neg", "x", "r")], threes=np.array([3]), **constants)
    after = canonicalize(proto)
    names = [one.op_type for one in all_nodes(after.graph)]
    assert names == ["ReduceSum", "Greater", "If", "Neg", "Pad", "Slice"]
    assert_same(proto, after)


def test_a_branch_that_is_not_taken_need_not_fit_its_constants():
    misfit = [node("Reshape", "two three", "s"), node("Add", "x s", "r")]
    proto = choice([node("Neg", "x", "r")], misfit, two=randn(0, 2), three=np.array([3]))
    proto.graph.node[-1].input[0] = "always"
    proto.graph.initializer.append(numpy_helper.from_array(np.array(True), "always"))
    assert ops(canonicalize(proto)) == ["Neg"]


def test_symbolic_shapes_that_branches_declare_are_forgotten():
    """Torch writes some of a wrong rank around a scatter, and ONNX Runtime refuses them."""
    proto = choice([node("Exp", "x", "r")], [node("Abs", "x", "s")])
    declared = [("n", 3), (3,)]
    for branch, shape in zip(nested(proto.graph.node[-1]), declared, strict=True):
        name = branch.output[0].name
        branch.output[0].CopyFrom(helper.make_tensor_value_info(name, 1, shape))
    bound = bind_shapes(proto, {})
    results = [branch.output[0] for branch in nested(bound.graph.node[-1])]
    assert [declared_shape(one) for one in results] == [None, (3,)]
    assert_same(proto, bound)
