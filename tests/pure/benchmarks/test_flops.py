"""The operation counts behind the benchmarks' share of peak."""

import pytest
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "giga"),
    [("resnet50", 8.18), ("mobilenet_v2", 0.60), ("resnet3d18", 81.4), ("squeezenet", 0.70)],
)
def test_published_counts(name, giga):
    assert count_flops(zoo.NETWORKS[name]()) / 1e9 == pytest.approx(giga, rel=0.02)
