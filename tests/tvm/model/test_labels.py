"""Which of the model's nodes each kernel computes, through rewriting, import and fusion."""

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.built import HOST, imported
from helpers.quantised_nets import network

from ansor_deploy.model.prepare import prepare
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.labels import calls, placed


def nodes_of(proto):
    """The names of the nodes of each kernel, in the order of a run."""
    return [" ".join(node.name for node in place.nodes) for _, place in calls(imported(proto))]


def _block(at, read):
    """A convolution of an inverted residual block, named after its place."""
    norm = " ".join(f"n{at}.{key}" for key in "sbmv")
    return [
        graphs.node("Conv", f"{read} w{at}", f"conv{at}", pads=[1, 1, 1, 1]),
        graphs.node("BatchNormalization", f"conv{at} {norm}", f"norm{at}"),
        graphs.node("Clip", f"norm{at} low high", f"clip{at}"),
    ]


def residual():
    """Two equal blocks with a sum behind each, as in MobileNet-V2."""
    nodes = [
        *_block(0, "x"),
        graphs.node("Add", "clip0 x", "sum0"),
        *_block(1, "sum0"),
        graphs.node("Add", "clip1 sum0", "y"),
    ]
    constants = {"low": np.float32(0), "high": np.float32(6)}
    for at in range(2):
        constants |= {f"w{at}": graphs.randn(at, 16, 16, 3, 3)}
        constants |= graphs.batch_norm(f"n{at}", 16, at)
    return graphs.model(nodes, {"x": (1, 16, 14, 14)}, constants=constants)


def test_a_norm_that_was_folded_into_weights_is_named_with_what_is_fused():
    blocks = ["conv0 norm0 clip0 sum0", "conv1 norm1 clip1 y"]
    assert [one for one in nodes_of(residual()) if "conv" in one] == blocks


def test_nodes_without_names_have_those_of_their_outputs():
    proto = residual()
    for node in proto.graph.node:
        node.name = ""
    assert nodes_of(proto) == nodes_of(residual())


def test_a_task_has_a_place_for_each_call():
    proto = residual()
    made = imported(proto)
    tasks = placed(extract(made.mod, HOST), calls(made))
    (task,) = {task.key: task for task in tasks.values() if task.workload.op == "conv2d"}.values()
    assert task.weight == 2
    assert [[node.op for node in place.nodes] for place in task.places] == [
        ["Conv", "BatchNormalization", "Clip", "Add"]
    ] * 2
    assert [place.nodes[0].name for place in task.places] == ["conv0", "conv1"]


def test_a_norm_that_was_exported_as_nodes_is_all_theirs():
    nodes = [
        graphs.node("ReduceMean", "x", "mean", axes=[-1]),
        graphs.node("Sub", "x mean", "apart"),
        graphs.node("Pow", "apart two", "square"),
        graphs.node("ReduceMean", "square", "variance", axes=[-1]),
        graphs.node("Add", "variance tiny", "more"),
        graphs.node("Sqrt", "more", "root"),
        graphs.node("Div", "apart root", "norm"),
        graphs.node("Mul", "norm scale", "scaled"),
        graphs.node("MatMul", "scaled w", "y"),
    ]
    constants = {"two": np.float32(2), "tiny": np.float32(1e-5), "scale": graphs.randn(0, 64)}
    constants["w"] = graphs.randn(1, 64, 32)
    proto = graphs.model(nodes, {"x": (8, 64)}, constants=constants)
    named = " ".join(nodes_of(proto)).split()
    assert named == [node.name for node in proto.graph.node]


@pytest.mark.parametrize(
    ("way", "made"),
    [
        (
            "qdq",
            ["x_DequantizeLinear t0 t1_QuantizeLinear", "t6_DequantizeLinear t7 t7_QuantizeLinear"],
        ),
        (
            "qdq-s8",
            ["x_DequantizeLinear t0 t1_QuantizeLinear", "t6_DequantizeLinear t7 t7_QuantizeLinear"],
        ),
        ("qoperator", ["t2_quant t3_quant", "t5_quant t6_quant"]),
    ],
)
def test_kernels_of_bytes_have_the_nodes_between_them(way, made):
    assert set(made) <= set(nodes_of(network(f"residual:{way}")))


def test_shapes_that_are_computed_are_no_kernels():
    nodes = [
        graphs.node("Relu", "x", "r"),
        graphs.node("Shape", "x", "all"),
        graphs.node("Gather", "all zero", "first"),
        graphs.node("Concat", "first rest", "to", axis=0),
        graphs.node("Reshape", "r to", "flat"),
        graphs.node("MatMul", "flat w", "y"),
    ]
    constants = {"zero": np.array([0]), "rest": np.array([64]), "w": graphs.randn(0, 64, 8)}
    proto = graphs.model(nodes, {"x": (4, 8, 8)}, constants=constants)
    named = " ".join(nodes_of(proto)).split()
    assert [one for one in named if one in ("all", "first", "to")] == []
    assert {"r", "y"} <= set(named)


def test_each_node_of_a_network_is_computed_in_one_place():
    path = graphs.LIGHT_FOLDER / "light_shufflenet.onnx"
    computes = [n.name or n.output[0] for n in onnx.load(path).graph.node if n.op_type == "Conv"]
    tasks = prepare(path, HOST).tasks
    named = [node.name for task in tasks for place in task.places for node in place.nodes]
    assert set(computes) <= set(named)
    assert all(named.count(one) == 1 for one in computes)


def test_what_is_computed_twice_has_both_names():
    nodes = [
        graphs.node("MatMul", "x w", "a"),
        graphs.node("MatMul", "x w", "b"),
        graphs.node("Softmax", "a", "p"),
        graphs.node("Softmax", "b", "q"),
        graphs.node("Concat", "p q", "y", axis=0),
    ]
    proto = graphs.model(nodes, {"x": (8, 64)}, constants={"w": graphs.randn(0, 64, 32)})
    assert {"a", "b", "p", "q"} <= {one for names in nodes_of(proto) for one in names.split()}
