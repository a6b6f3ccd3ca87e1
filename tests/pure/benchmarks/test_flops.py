"""The operation counts behind the benchmarks' share of peak."""

import numpy as np
import pytest
from helpers.graphs import model as ops_model
from helpers.graphs import node
from onnx import TensorProto, helper

from benchmarks.networks import zoo
from benchmarks.networks.flops import count_flops
from benchmarks.networks.onnx_net import Net


def test_known_layers():
    net = Net("layers", 0)
    x = net.input("x", (1, 8, 10, 10))
    x = net.conv(x, 16, (3, 3))  # 1600 outputs, 72 products each
    x = net.conv(x, 16, (3, 3), group=16)  # 1600 outputs, 9 each
    x = net.conv_transpose(x, 4, stride=2, pad=1)  # 1600 inputs, 64 each
    model = net.model(x, "y", (1, 4, 20, 20))
    assert count_flops(model) == 2 * 1600 * (72 + 9 + 64)


def test_gemm_and_batched_matmul():
    f = TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["a", "b"], ["ab"]),
        helper.make_node("Gemm", ["c", "d"], ["cd"], transA=1),
    ]
    shapes = {"a": (3, 4, 5), "b": (3, 5, 6), "c": (7, 2), "d": (7, 9)}
    given = [helper.make_tensor_value_info(n, f, s) for n, s in shapes.items()]
    made = {"ab": (3, 4, 6), "cd": (2, 9)}
    outputs = [helper.make_tensor_value_info(n, f, s) for n, s in made.items()]
    model = helper.make_model(helper.make_graph(nodes, "products", given, outputs))
    assert count_flops(model) == 2 * (72 * 5 + 18 * 7)


def test_sizes_that_the_model_computes():
    constants = {"one": np.array([1]), "rows": np.array([5]), "w": np.ones((5, 3), np.float32)}
    nodes = [
        node("Shape", "x", "s", start=1),
        node("Mul", "s one", "n"),
        node("Concat", "n rows", "shape", axis=0),
        node("Reshape", "x shape", "r"),
        node("MatMul", "r w", "y"),
    ]
    assert count_flops(ops_model(nodes, {"x": (5, 5)}, constants=constants)) == 2 * 15 * 5


def test_unknown_size_is_named():
    nodes = [node("NonZero", "x", "n"), node("Cast", "n", "f", to=1), node("MatMul", "f w", "y")]
    unknown = ops_model(nodes, {"x": (3, 4)}, constants={"w": np.ones((9, 3), np.float32)})
    with pytest.raises(ValueError, match="of node y"):
        count_flops(unknown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "giga"),
    [("resnet50", 8.18), ("mobilenet_v2", 0.60), ("resnet3d18", 81.4), ("squeezenet", 0.70)],
)
def test_published_counts(name, giga):
    assert count_flops(zoo.NETWORKS[name]()) / 1e9 == pytest.approx(giga, rel=0.02)
