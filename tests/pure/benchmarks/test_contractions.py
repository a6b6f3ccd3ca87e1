"""Which node of ONNX Runtime computes what one of our tasks does, and what comes with it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks import light
from benchmarks.contractions import Contraction, Node, match, of_graph


def node(kind, elements, of, name="n", behind=()):
    return Node(name, "Conv", Contraction(kind, elements, of), behind=behind)


def test_a_pair_computes_the_same():
    ours = [Contraction("conv", (1, 7, 7, 64), (1, 1, 32)), Contraction("matmul", (5, 9), (4,))]
    theirs = [node("matmul", (1, 5, 9), (4,)), node("conv", (7, 7, 64), (1, 1, 32))]
    assert match(ours, theirs) == {0: 1, 1: 0}


def test_equal_contractions_are_paired_in_order():
    one = Contraction("conv", (7, 7, 64), (3, 3, 32))
    assert match([one] * 3, [node("conv", one.elements, one.of)] * 3) == {0: 0, 1: 1, 2: 2}


def test_channels_that_one_side_pads_make_no_difference():
    ours = [Contraction("conv", (1, 56, 56, 24), (1, 1, 96))]
    assert match(ours, [node("conv", (56, 56, 32), (1, 1, 96))]) == {0: 0}


def test_what_has_no_counterpart_is_left_alone():
    ours = [Contraction("conv", (7, 7, 64), (3, 3, 32))]
    assert match(ours, [node("conv", (56, 56, 64), (3, 3, 32))]) == {}
    assert match(ours, []) == {}


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("matmul_add_relu", ["n", "sum", "relu"]),
        ("matmul_relu", ["n"]),
        ("matmul_add", ["n", "sum"]),
        ("matmul", ["n"]),
    ],
)
def test_what_follows_counts_where_our_kernel_computes_it(task, names):
    behind = (("sum", "Add"), ("relu", "Relu"))
    assert node("matmul", (5, 9), (4,), behind=behind).computed_by(task) == names


def value(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def event(name, takes, gives):
    shapes = {
        "input_type_shape": [{"float": list(takes)}],
        "output_type_shape": [{"float": list(gives)}],
    }
    return {"name": f"{name}_kernel_time", "args": shapes}


def test_the_contractions_of_a_graph():
    weight = helper.make_tensor("w", TensorProto.FLOAT, (16, 8, 3, 3), np.zeros(1152))
    filters = helper.make_tensor("v", TensorProto.FLOAT, (16, 4, 2, 2), np.zeros(256))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv", strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("ConvTranspose", ["b", "v"], ["c"], "back"),
        helper.make_node("MatMul", ["c", "c"], ["y"], "matmul"),
    ]
    ends = [value("x", 1, 8, 10, 10)], [value("y", 1, 4, 5, 5)]
    model = helper.make_model(helper.make_graph(nodes, "g", *ends, [weight, filters]))
    events = [
        event("conv", (1, 8, 10, 10), (1, 16, 5, 5)),
        event("relu", (1, 16, 5, 5), (1, 16, 5, 5)),
        event("back", (1, 16, 5, 5), (1, 4, 10, 10)),
        event("matmul", (1, 4, 10, 10), (1, 4, 10, 10)),
    ]
    conv, back, matmul = of_graph(model, events)
    assert conv.contraction == Contraction("conv", (5, 5, 16), (3, 3, 8))
    assert (conv.stride, conv.behind) == (2, (("relu", "Relu"),))
    assert back.contraction.flops == 2 * 16 * 25 * 4 * 4
    assert matmul.contraction == Contraction("matmul", (1, 4, 10, 10), (10,))


def test_a_light_model_gets_weights_of_its_own():
    model = light.load("light_squeezenet")
    onnx.checker.check_model(model)
    (given,) = model.graph.input
    filters = [one for one in model.graph.initializer if len(one.dims) == 4]
    values = [onnx.numpy_helper.to_array(one) for one in filters]
    assert all(0.5 < one.std() * (one[0].size / 2) ** 0.5 < 2 for one in values)
    assert given.name not in {one.name for one in model.graph.initializer}
    assert model == light.load("light_squeezenet") != light.load("light_squeezenet", seed=1)
