"""Sizes that a file fixes are changed: a batch computes what its samples do, or a node is named."""

import numpy as np
import pytest
from helpers.graphs import model, node, randn, run
from onnx import helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.bind import bind_shapes


def shape(*sizes):
    return np.array(sizes, np.int64)


def attention():
    """As exporters of today write it: the batch is in every Reshape, or merged with the heads."""
    nodes = [
        node("Reshape", "x split", "heads"),  # (1, 6, 2, 4)
        node("Transpose", "heads", "by_head", perm=[0, 2, 1, 3]),
        node("Reshape", "by_head merged", "rows"),  # (2, 6, 4), by -1
        node("Transpose", "rows", "columns", perm=[0, 2, 1]),
        node("MatMul", "rows columns", "scores"),
        node("Add", "scores mask", "masked"),
        node("Softmax", "masked", "p", axis=-1),
        node("MatMul", "p rows", "mixed"),
        node("Reshape", "mixed back", "apart"),
        node("Transpose", "apart", "together", perm=[0, 2, 1, 3]),
        node("Reshape", "together joined", "y"),
    ]
    constants = {
        "split": shape(1, 6, 2, 4),
        "merged": shape(-1, 6, 4),
        "mask": randn(0, 1, 6, 6),
        "back": shape(1, 2, 6, 4),
        "joined": shape(1, 6, -1),
    }
    return model(nodes, {"x": (1, 6, 8)}, constants=constants)


def class_token():
    nodes = [
        node("Reshape", "x rows", "flat"),
        node("Concat", "token flat", "all", axis=1),
        node("Gather", "all first", "y", axis=1),
    ]
    constants = {"rows": shape(1, 5, 4), "token": randn(0, 1, 1, 4), "first": np.int64(0)}
    return model(nodes, {"x": (1, 20)}, constants=constants)


def steps_first():
    """The batch is in the middle: of a recurrence, and of what is reshaped after it."""
    nodes = [
        node("Transpose", "x", "steps", perm=[1, 0, 2]),
        helper.make_node("GRU", ["steps", "w", "r", "", "", "h"], ["out"], hidden_size=3),
        node("Squeeze", "out one", "states"),
        node("Reshape", "states apart", "parts"),
        node("Transpose", "parts", "y", perm=[1, 0, 2, 3]),
    ]
    constants = {
        "w": randn(0, 1, 9, 4),
        "r": randn(1, 1, 9, 3),
        "h": randn(2, 1, 1, 3),
        "one": shape(1),
        "apart": shape(5, 1, 3, 1),
    }
    return model(nodes, {"x": (1, 5, 4)}, constants=constants)


def gathered():
    """A view with strides, which PyTorch exports as a Gather of the flattened tensor."""
    rows = np.arange(11, -1, -1, dtype=np.int64).reshape(1, 3, 4)
    nodes = [node("Reshape", "x flat", "all"), node("Gather", "all rows", "y", axis=0)]
    return model(nodes, {"x": (1, 2, 6)}, constants={"flat": shape(-1), "rows": rows})


def resized():
    nodes = [
        helper.make_node("Resize", ["x", "", "", "sizes"], ["large"], mode="nearest"),
        node("Expand", "large wide", "y"),
    ]
    constants = {"sizes": shape(1, 2, 6, 6), "wide": shape(1, 2, 6, 6)}
    return model(nodes, {"x": (1, 2, 3, 3)}, constants=constants)


def computed():
    """The shape is computed from the input's: nothing is to be changed."""
    nodes = [
        node("Shape", "x", "sizes"),
        node("Gather", "sizes zero", "batch", axis=0),
        node("Unsqueeze", "batch first", "rows"),
        node("Concat", "rows rest", "flat", axis=0),
        node("Reshape", "x flat", "y"),
    ]
    constants = {"zero": np.int64(0), "first": shape(0), "rest": shape(-1)}
    return model(nodes, {"x": (1, 2, 3)}, constants=constants)


def pairs():
    """Exported for a batch of two, each sample with two rows of the result."""
    nodes = [node("Reshape", "x rows", "r"), node("Relu", "r", "y")]
    return model(nodes, {"x": (2, 4, 3)}, constants={"rows": shape(4, 2, 3)})


@pytest.mark.parametrize(
    "made", [attention, class_token, steps_first, gathered, resized, computed, pairs]
)
def test_a_batch_computes_what_its_samples_do(made):
    proto = made()
    before = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    bound = bind_shapes(proto, {"x": (3 * before[0], *before[1:])})
    x = randn(9, 3 * before[0], *before[1:])
    (have,) = run(bound, {"x": x})
    parts = [run(proto, {"x": part})[0] for part in np.split(x, 3)]
    np.testing.assert_allclose(have, np.concatenate(parts), rtol=1e-5, atol=1e-6)


def test_a_batch_may_become_smaller():
    (have,) = run(bind_shapes(pairs(), {"x": (1, 4, 3)}), {"x": randn(0, 1, 4, 3)})
    assert have.shape == (2, 2, 3)


def test_the_model_stays_as_it_is():
    proto = attention()
    before = proto.SerializeToString()
    bind_shapes(proto, {"x": (4, 6, 8)})
    assert proto.SerializeToString() == before
    assert bind_shapes(proto, {"x": (1, 6, 8)}).graph.node == proto.graph.node


def test_other_dimensions_change_where_the_graph_lets_them():
    nodes = [
        node("Conv", "x w", "c"),
        node("GlobalAveragePool", "c", "p"),
        node("Flatten", "p", "y"),
    ]
    proto = model(nodes, {"x": (1, 3, 8, 8)}, constants={"w": randn(0, 4, 3, 3, 3)})
    (have,) = run(bind_shapes(proto, {"x": (2, 3, 12, 9)}), {"x": randn(1, 2, 3, 12, 9)})
    assert have.shape == (2, 4)


def forbidding(op, inputs, constants=None, sizes=(1, 4), **attributes):
    return model([node(op, inputs, "y", **attributes)], {"x": sizes}, constants=constants)


@pytest.mark.parametrize(
    ("proto", "sizes", "why"),
    [
        (forbidding("Squeeze", "x axes", {"axes": shape(0)}), (2, 4), r"\(Squeeze\)"),
        (forbidding("Add", "x two", {"two": randn(0, 2, 4)}, (2, 4)), (6, 4), r"\(Add\)"),
        (forbidding("Gather", "x at", {"at": np.int64(0)}, axis=0), (2, 4), "grow with the batch"),
        (forbidding("ReduceSum", "x at", {"at": shape(0)}), (2, 4), "grow with the batch"),
        (forbidding("Reshape", "x to", {"to": shape(2, 2)}), (1, 6), r"makes \(2, 2\) of \(1, 6\)"),
        (forbidding("MatMul", "x w", {"w": randn(0, 4, 3)}), (1, 5), r"\(MatMul\)"),
    ],
    ids=["squeeze", "constant", "one sample", "sum", "reshape", "features"],
)
def test_a_node_that_forbids_it_is_named(proto, sizes, why):
    with pytest.raises(ModelError, match=r"node y .*" + why):
        bind_shapes(proto, {"x": sizes})
