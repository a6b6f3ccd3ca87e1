"""What the branches of an If compute of constants is computed before them."""

import numpy as np
import pytest
from helpers.graphs import assert_same, either, model, node, ops, randn, run
from helpers.tried import assumed
from onnx import TensorProto, defs, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.onnx.bind import bind_shapes, declared_shape
from ansor_deploy.model.onnx.skeleton import WITH_GRAPHS, nested
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


def test_a_length_fits_each_branch_that_a_caller_may_choose():
    """The sampling rate chooses one of two windows, as in Silero's detector of speech."""
    first, second = ([node("Conv", f"x w{size}", "r")] for size in (64, 32))
    nodes = [node("Equal", "rate low", "slow"), either("slow", "y", first, second)]
    constants = {f"w{size}": randn(size, 4, 1, size) for size in (64, 32)}
    inputs = {"x": (1, 1, "samples"), "rate": ()}
    proto = model(nodes, inputs, constants={"low": np.float32(8000), **constants})
    assert assumed(proto, {}) == {"x": (1, 1, Span(64, 128))}
    # A flag may say that inputs of other sizes come.
    proto.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    proto.graph.node[0].CopyFrom(node("Identity", "rate", "slow"))
    assert assumed(proto, {})["x"] == (1, 1, Span(1, 128))


GROWN = [node("Concat", "x x", "r", axis=0)]
# As torch writes `chunk` in a branch of a scripted module.
PART = [node("Shape", "x", "n"), node("Div", "n three", "size"),
        node("Expand", "size three", "sizes"),
        node("SplitToSequence", "x sizes", "parts", axis=0),
        node("SequenceAt", "parts two", "r")]  # fmt: skip


@pytest.mark.parametrize("branch", [GROWN, PART])
def test_a_branch_may_make_more_or_less_than_the_other(branch):
    """As the greedy search of a transducer appends a token to its text, or does not."""
    constants = {"three": np.array([3]), "two": np.array(2)}
    proto = choice(branch, [node("Neg", "x", "r")], **constants)
    after = canonicalize(proto)
    assert {"If", "SplitToSequence"}.isdisjoint(ops(after))
    for x in (np.array([1, 2, 3], np.float32), np.array([-1, -2, -3], np.float32)):
        made, count = run(after, {"x": x})
        np.testing.assert_array_equal(made[:count], run(proto, {"x": x})[0])


def test_branches_of_different_ranks_are_refused_by_the_name_of_the_if():
    proto = choice([node("Unsqueeze", "x none", "r")], [node("Neg", "x", "r")], none=np.array([0]))
    with pytest.raises(ModelError, match=r"\(If\): a run chooses one of its branches"):
        canonicalize(proto)


def test_graphs_are_looked_for_in_every_operator_that_has_some():
    kinds = (defs.OpSchema.AttrType.GRAPH, defs.OpSchema.AttrType.GRAPHS)
    schemas = [one for one in defs.get_all_schemas_with_history() if not one.domain]
    having = {one.name for one in schemas if any(a.type in kinds for a in one.attributes.values())}
    assert having == WITH_GRAPHS
    body = helper.make_graph([], "body", [], [])
    assert nested(helper.make_node("Search", [], ["y"], domain="com.microsoft", decoder=body))
