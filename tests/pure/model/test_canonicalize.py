"""Every pass keeps the outputs and does its job."""

import numpy as np
import pytest
from helpers.graphs import (
    assert_same,
    before_softmax,
    either,
    light_models,
    model,
    node,
    ops,
    randn,
    random_feeds,
    randomize_weights,
    run,
)
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.onnx.file import load

INT64 = TensorProto.INT64


def check(proto, want):
    after = canonicalize(proto)
    assert ops(after) == want
    assert_same(proto, after)
    return after


def initializers(proto):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def test_constant_of_shape_becomes_a_weight():
    value = numpy_helper.from_array(np.array([0.25], np.float32))
    nodes = [node("ConstantOfShape", "s", "w", value=value), node("MatMul", "x w", "y")]
    after = check(model(nodes, {"x": (2, 3)}, constants={"s": np.array([3, 4])}), ["MatMul"])
    np.testing.assert_array_equal(initializers(after)["w"], np.full((3, 4), 0.25, np.float32))


def test_constant_of_shape_beyond_reason_is_refused():
    nodes = [node("ConstantOfShape", "s", "w"), node("MatMul", "x w", "y")]
    proto = model(nodes, {"x": (2, 3)}, constants={"s": np.array([3, 2**26])})
    with pytest.raises(ModelError, match="more than 640 MiB"):
        canonicalize(proto)


def test_growth_that_takes_long_is_left_alone():
    nodes = [node("Expand", "c s", "w"), node("Add", "x w", "y")]
    constants = {"c": randn(0, 1), "s": np.array([2**22])}
    proto = model(nodes, {"x": (1,)}, constants=constants)
    assert ops(canonicalize(proto)) == ["Expand", "Add"]


def test_long_concats_are_grouped():
    """TVM and Python's parser end at some hundreds of operands."""
    proto = model([node("Concat", "x " * 300, "y", axis=1)], {"x": (2, 3)})
    check(proto, ["Concat"] * 6)
    assert max(len(n.input) for n in canonicalize(proto).graph.node) == 64


def test_shape_chain_of_an_attention_head():
    """(batch, tokens, heads * width) --> (batch, heads, tokens, width), as PyTorch exports it."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Constant", "", "zero", value_int=0),
        node("Constant", "", "one", value_ints=[1]),
        node("Gather", "shape zero", "batch"),
        node("Slice", "shape one two", "tokens"),
        node("Constant", "", "axis", value=numpy_helper.from_array(np.array([0]))),
        node("Unsqueeze", "batch axis", "batch1"),
        node("Concat", "batch1 tokens heads", "new", axis=0),
        node("Reshape", "x new", "split"),
        node("Transpose", "split", "y", perm=[0, 2, 1, 3]),
    ]
    constants = {"two": np.array([2]), "heads": np.array([4, -1])}
    proto = bind_shapes(model(nodes, {"x": ("b", "t", 8)}, constants=constants), {"x": (2, 3, 8)})
    after = check(proto, ["Reshape", "Transpose"])
    assert [t.tolist() for t in initializers(after).values()] == [[2, 3, 4, 2]]


def test_attention_mask_of_ranges_and_comparisons():
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape last", "n"),
        node("Range", "zero n one", "row"),
        node("Unsqueeze", "row one1", "column"),
        node("LessOrEqual", "row column", "seen"),
        node("Where", "seen f0 low", "mask"),
        node("Add", "x mask", "y"),
    ]
    constants = {
        "last": np.array(-1), "zero": np.array(0), "one": np.array(1), "one1": np.array([1]),
        "f0": np.float32(0), "low": np.float32(-1e4),
    }  # fmt: skip
    check(model(nodes, {"x": (1, 2, 5, 5)}, constants=constants), ["Add"])


def test_expand_with_a_computed_shape():
    nodes = [
        node("Shape", "x", "shape"),
        node("ConstantOfShape", "rank", "ones", value=helper.make_tensor("v", INT64, [1], [1])),
        node("Mul", "ones minus", "negative"),
        node("Equal", "shape negative", "same"),
        node("Where", "same ones shape", "target"),
        node("Expand", "c target", "grown"),
        node("Add", "x grown", "y"),
    ]
    constants = {"rank": np.array([2]), "minus": np.array(-1), "c": randn(0, 1, 3)}
    check(model(nodes, {"x": (2, 3)}, constants=constants), ["Add"])


def test_only_exact_arithmetic_is_folded():
    nodes = [node("Tanh", "c", "e"), node("Sqrt", "c", "r"), node("Mul", "e r", "m"),
             node("Add", "x m", "y")]  # fmt: skip
    proto = model(nodes, {"x": (2, 3)}, constants={"c": np.abs(randn(0, 2, 3))})
    assert ops(canonicalize(proto)) == ["Tanh", "Mul", "Add"]


def test_integer_reductions_are_folded():
    nodes = [node("Shape", "x", "s"), node("ReduceProd", "s", "n", keepdims=1),
             node("Reshape", "x n", "y")]  # fmt: skip
    check(model(nodes, {"x": (2, 3, 4)}), ["Reshape"])


def test_reshape_gets_its_static_shape():
    nodes = [node("Reshape", "x s", "y")]
    after = check(model(nodes, {"x": (2, 3, 4)}, constants={"s": np.array([0, -1])}), ["Reshape"])
    assert initializers(after)[after.graph.node[0].input[1]].tolist() == [2, 12]


def test_reshape_of_an_empty_tensor_keeps_its_shape():
    nodes = [node("Slice", "x n n", "e"), node("Reshape", "e s", "y", allowzero=1)]
    constants = {"n": np.array([9]), "s": np.array([3, 0])}
    check(model(nodes, {"x": (2, 3)}, constants=constants), ["Identity"])


def test_constants_that_do_not_fit_name_the_node():
    nodes = [node("Gather", "c i", "g"), node("Add", "x g", "y")]
    constants = {"c": randn(0, 3), "i": np.array(9)}
    with pytest.raises(ModelError, match="node 'g': Gather does not fit"):
        canonicalize(model(nodes, {"x": (1,)}, constants=constants))


@pytest.mark.parametrize(
    ("shape", "indices", "axis"), [((1, 9), (1, 4), 1), ((3, 5), (2, 9), -1), ((4, 3), (6, 2), 0)]
)
def test_elements_of_a_constant_are_gathered(shape, indices, axis):
    nodes = [node("GatherElements", "c i", "g", axis=axis), node("Add", "x g", "y")]
    chosen = np.random.default_rng(0).integers(-shape[axis], shape[axis], indices)
    check(model(nodes, {"x": indices}, constants={"c": randn(0, *shape), "i": chosen}), ["Add"])


@pytest.mark.parametrize("axis", [np.array(1), np.array([1])])
def test_constants_are_added_up_along_an_axis_that_may_be_in_a_list(axis):
    nodes = [node("CumSum", "c a", "s"), node("Add", "x s", "y")]
    constants = {"c": np.arange(6).reshape(2, 3), "a": axis}
    proto = model(nodes, {"x": (2, 3)}, constants=constants, dtype=TensorProto.INT64)
    check(proto, ["Add"])


def test_shapes_that_contradict_each_other_name_the_node():
    proto = model([node("MatMul", "x w", "y")], {"x": ("n", "k")}, constants={"w": randn(0, 3, 4)})
    with pytest.raises(ModelError, match=r"contradict each other.*MatMul") as caught:
        canonicalize(bind_shapes(proto, {"x": (2, 5)}))
    assert "--input-shape" in caught.value.hint


def test_shapes_that_contradict_each_other_before_sizes_that_a_run_decides():
    nodes = [node("Add", "x w", "a"), node("NonZero", "a", "n"), node("Slice", "a b e", "s"),
             node("Concat", "s s", "y", axis=0)]  # fmt: skip
    constants = {"w": randn(0, 2, 5), "b": np.array([0]), "e": np.array([1])}
    proto = model(nodes, {"x": ("n", "k")}, constants=constants)
    with pytest.raises(ModelError, match=r"contradict each other.*Add"):
        canonicalize(bind_shapes(proto, {"x": (2, 3)}))


def test_the_node_that_onnx_does_not_take_is_named_before_one_that_needs_its_shape():
    nodes = [node("Transpose", "x", "t", perm=[1, -1]), node("ReduceMax", "t", "y", keepdims=1)]
    with pytest.raises(ModelError, match=r"Transpose.*perm"):
        canonicalize(model(nodes, {"x": (2, 3)}))


def test_a_constant_output_is_made_by_a_node():
    nodes = [node("Add", "a a", "z"), node("Mul", "x z", "y")]
    proto = model(nodes, {"x": (2,)}, outputs=("y", "z"), constants={"a": randn(0, 2)})
    check(proto, ["Mul", "Identity"])


def test_the_branch_of_a_constant_condition_is_taken():
    branches = [
        helper.make_graph(
            [node("Add", "x two", "inner"), node("Neg", "inner", name)],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,))],
            [numpy_helper.from_array(np.float32([factor, 2]), "two")],
        )
        for name, factor in (("first", 1.0), ("second", 3.0))
    ]
    nodes = [
        node("If", f"{condition} ", result, then_branch=branches[0], else_branch=branches[1])
        for condition, result in (("t", "a"), ("f", "b"), ("t", "c"))
    ]
    nodes.append(node("Sum", "a b c", "y"))
    constants = {"t": np.array(True), "f": np.array([False])}
    check(model(nodes, {"x": (2,)}, constants=constants), ["Add", "Neg"] * 3 + ["Add"] * 2)


def test_sum_of_many_becomes_a_chain():
    check(model([node("Sum", "a b c d", "y")], dict.fromkeys("abcd", (2, 3))), ["Add"] * 3)
    check(model([node("Sum", "a b", "y")], {"a": (2, 3), "b": (3,)}), ["Add"])
    check(model([node("Sum", "a", "s"), node("Relu", "s", "y")], {"a": (2, 3)}), ["Relu"])
    check(model([node("Max", "a b c", "y")], dict.fromkeys("abc", (2, 3))), ["Max"] * 2)


@pytest.mark.parametrize("opset", [9, 17])
def test_dropout_goes(opset):
    nodes = [node("Relu", "x", "a"), node("Dropout", "a", "b mask"), node("Tanh", "b", "y")]
    check(model(nodes, {"x": (2, 3)}, opset=opset), ["Relu", "Tanh"])


def test_dropout_of_a_time_when_training_was_the_default():
    nodes = [node("Dropout", "x", "y")]
    with pytest.raises(ModelError, match="in training its results are random"):
        canonicalize(model(nodes, {"x": (2, 3)}, opset=6))
    nodes = [node("Dropout", "x", "d", is_test=1), node("Tanh", "d", "y")]
    assert ops(canonicalize(model(nodes, {"x": (2, 3)}, opset=6))) == ["Tanh"]


def test_the_mask_of_dropout_is_a_constant():
    nodes = [node("Dropout", "x", "a m"), node("Cast", "m", "f", to=1), node("Add", "a f", "y")]
    check(model(nodes, {"x": (2,)}), ["Add"])


def test_identity_goes_and_outputs_keep_their_names():
    nodes = [node("Identity", "x", "a"), node("Relu", "a", "b"), node("Identity", "b", "y")]
    after = check(model(nodes, {"x": (2, 3)}), ["Relu"])
    assert [value.name for value in after.graph.output] == ["y"]


def test_identity_from_input_to_output_stays():
    check(model([node("Identity", "x", "y")], {"x": (2, 3)}), ["Identity"])


def test_two_names_for_one_output_stay_two():
    nodes = [node("Relu", "x", "y"), node("Identity", "y", "z")]
    check(model(nodes, {"x": (2, 3)}, outputs=("y", "z")), ["Relu", "Identity"])


def test_cast_to_the_same_type_goes():
    nodes = [node("Cast", "x", "a", to=1), node("Relu", "a", "y")]
    check(model(nodes, {"x": (2, 3)}), ["Relu"])


@pytest.mark.parametrize("opset", [9, 13])
def test_relu6_is_a_clip_with_scalar_bounds(opset):
    bounds = {"min": 0.0, "max": 6.0} if opset < 11 else {}
    inputs = "a" if opset < 11 else "a lo hi"
    nodes = [node("Mul", "x ten", "a"), node("Clip", inputs, "y", **bounds)]
    constants = {"ten": np.float32(10)}
    if opset >= 11:
        constants |= {"lo": np.float32([0]).reshape(()), "hi": np.float32(6)}
    after = check(model(nodes, {"x": (2, 8)}, constants=constants, opset=opset), ["Mul", "Clip"])
    clip = after.graph.node[1]
    values = [initializers(after)[name] for name in clip.input[1:]]
    assert [(v.shape, v.item()) for v in values] == ([] if opset < 11 else [((), 0), ((), 6)])


def test_bounds_of_a_clip_may_come_from_constant_nodes():
    six = numpy_helper.from_array(np.array(0.5, np.float32))
    nodes = [node("Constant", "", "hi", value=six), node("Clip", "x - hi", "y")]
    after = check(model(nodes, {"x": (4, 5)}), ["Clip"])
    assert after.graph.node[0].input[1] == ""


def test_clip_at_zero_alone_is_relu():
    check(
        model([node("Clip", "x lo", "y")], {"x": (9,)}, constants={"lo": np.float32(0)}), ["Relu"]
    )


def test_clip_without_bounds_goes():
    nodes = [node("Clip", "x lo hi", "a"), node("Tanh", "a", "y")]
    constants = {"lo": np.float32(-np.inf), "hi": np.float32(np.nan)}
    check(model(nodes, {"x": (9,)}, constants=constants), ["Tanh"])


def test_clip_with_crossed_bounds_is_its_upper_bound():
    constants = {"lo": np.float32(2), "hi": np.float32(1)}
    check(model([node("Clip", "x lo hi", "y")], {"x": (9,)}, constants=constants), ["Clip"])


def test_min_of_max_is_a_clip():
    nodes = [node("Max", "x lo", "a"), node("Min", "hi a", "b"), node("Tanh", "b", "y")]
    constants = {"lo": np.float32(-0.5), "hi": np.float32([0.5])}
    check(model(nodes, {"x": (3, 9)}, constants=constants), ["Clip", "Tanh"])


def test_relu_and_min_is_a_clip_unless_the_relu_is_read_elsewhere():
    nodes = [node("Relu", "x", "a"), node("Min", "a hi", "y")]
    check(model(nodes, {"x": (3, 9)}, constants={"hi": np.float32(0.5)}), ["Clip"])
    nodes = [node("Relu", "x", "a"), node("Min", "a hi", "b"), node("Add", "a b", "y")]
    proto = model(nodes, {"x": (3, 9)}, constants={"hi": np.float32(0.5)})
    assert_same(proto, canonicalize(proto))


def test_maximum_of_tensors_stays():
    check(model([node("Max", "x c", "y")], {"x": (3, 2)}, constants={"c": randn(0, 2)}), ["Max"])


def test_dead_code_goes_and_inputs_stay():
    nodes = [node("Relu", "x", "y"), node("Tanh", "x", "dead"), node("Exp", "dead", "deader")]
    proto = model(nodes, {"x": (2, 3), "unused": (1,)}, constants={"w": randn(0, 4)})
    after = canonicalize(proto)
    assert ops(after) == ["Relu"]
    assert not after.graph.initializer
    assert [value.name for value in after.graph.input] == ["x", "unused"]


def test_nested_graphs_keep_what_they_read():
    """The names that an If's branches take from outside are neither renamed nor dropped."""
    branches = [node("Add", "a w", "r")], [node("Sub", "a w", "r")]
    nodes = [
        node("Identity", "x", "a"),
        node("ReduceSum", "x", "total", keepdims=0),
        node("Greater", "total zero", "positive"),
        either("positive", "y", *branches),
    ]
    constants = {"w": randn(1, 3), "zero": np.float32(0)}
    check(
        model(nodes, {"x": (3,)}, constants=constants), ["Identity", "ReduceSum", "Greater", "If"]
    )


def test_local_functions_are_inlined():
    twice = helper.make_function(
        "local", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 17)]
    )
    proto = model([node("Relu", "x", "y")], {"x": (3,)})
    proto.functions.append(twice)
    proto.opset_import.append(helper.make_opsetid("local", 1))
    proto.graph.node.insert(0, helper.make_node("Twice", ["x"], ["t"], domain="local"))
    proto.graph.node[1].input[0] = "t"
    check(proto, ["Add", "Relu"])


def test_the_model_given_stays_as_it_is_and_the_bytes_repeat():
    nodes = [node("Sum", "a b c", "s"), node("Dropout", "s", "y")]
    proto = model(nodes, dict.fromkeys("abc", (2, 3)))
    before = proto.SerializeToString()
    assert canonicalize(proto).SerializeToString() == canonicalize(proto).SerializeToString()
    assert proto.SerializeToString() == before


def test_a_second_time_changes_nothing():
    nodes = [node("Relu", "x", "a"), node("Clip", "a - six", "b"), node("Sum", "b x", "y")]
    once = canonicalize(model(nodes, {"x": (2, 3)}, constants={"six": np.float32(6)}))
    assert ops(canonicalize(once)) == ops(once)


PRODUCTS_OF_LRN = 3  # squares, their scale, and a power by two roots

# Their dense layers have up to 144 million weights: of these, the one with all their operators.
HEAVY, LEFT_OUT = "bvlc_alexnet", ("vgg19", "zfnet512")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=p.stem, marks=pytest.mark.slow if p.stem.endswith(HEAVY) else ())
        for p in light_models()
        if not p.stem.endswith(LEFT_OUT)
    ],
)
def test_light_models(path):
    trained = randomize_weights(load(path).proto, seed=1)
    is_classifier = trained.graph.node[-1].op_type == "Softmax"
    proto = bind_shapes(before_softmax(trained) if is_classifier else trained, {})
    after = canonicalize(proto)
    gone = {"BatchNormalization", "Sum", "Dropout", "ConstantOfShape", "Unsqueeze", "Identity"}
    assert gone.isdisjoint(ops(after))
    if "densenet" not in path.stem:  # there a batch norm comes before the convolution
        assert ops(after).count("Mul") == PRODUCTS_OF_LRN * ops(trained).count("LRN")
    (output,) = run(proto, random_feeds(proto))
    assert np.isfinite(output).all()
    assert output.std() > 0
    assert_same(proto, after, tolerance=1e-4)


def test_light_model_with_the_constant_weights_of_the_file():
    (path,) = [p for p in light_models() if p.stem == "light_squeezenet"]
    proto = bind_shapes(load(path).proto, {})
    assert_same(proto, canonicalize(proto))
