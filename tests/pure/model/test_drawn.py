"""Models that draw random numbers: what they draw follows from a seed, and looks random."""

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node, typed
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ansor_deploy.model.onnx.drawn import draw_by_seed
from ansor_deploy.model.onnx.file import load

INT32 = TensorProto.INT32


def drawn(nodes, feeds, seeds=(1,), inputs=None, opset=17):
    """What a model with these nodes draws with each seed."""
    proto = model(nodes, inputs or {"x": feeds["x"].shape}, opset=opset)
    draw_by_seed(proto)
    (seed,) = {one.name for one in proto.graph.input} - feeds.keys()
    run = ReferenceEvaluator(proto).run
    return [run(None, {**feeds, seed: np.array(one)})[0] for one in seeds]


ROWS = {"x": np.full((40, 500), 0.3, np.float32)}
DRAWS = [
    (node("RandomNormalLike", "x", "y", mean=2.0, scale=0.5), 2, 0.5),
    (node("RandomNormal", "", "y", shape=[40, 500]), 0, 1),
    (node("RandomUniformLike", "x", "y"), 0.5, 12**-0.5),
    (node("RandomUniform", "", "y", shape=[40, 500], low=-1.0, high=3.0), 1, 4 * 12**-0.5),
    (node("Bernoulli", "x", "y"), 0.3, 0.21**0.5),
]


@pytest.mark.parametrize(
    ("draw", "mean", "spread"), DRAWS, ids=lambda one: getattr(one, "op_type", "")
)
def test_a_distribution(draw, mean, spread):
    nodes = [draw, node("Identity", "x", "unread")]
    one, same, other = drawn(nodes, ROWS, (7, 7, 8))
    assert np.array_equal(one, same)
    assert abs(one.mean() - mean) < 0.04 * spread
    assert abs(one.std() - spread) < 0.04 * spread
    neighbours = [(one, other), (one[1:], one[:-1]), (one[:, 1:], one[:, :-1])]
    apart = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in neighbours]
    assert np.abs(apart).max() < 0.04


def test_classes_by_their_probabilities():
    logs = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]], np.float32))
    (found,) = drawn([node("Multinomial", "x", "y", sample_size=4000)], {"x": logs})
    assert found.dtype == np.int32
    shares = [np.bincount(row, minlength=3) / 4000 for row in found]
    assert np.abs(shares - np.exp(logs)).max() < 0.04


def test_nodes_draw_other_numbers_and_so_do_the_steps_of_a_loop():
    like = node("RandomUniformLike", "x", "a")
    two = [like, node("RandomUniformLike", "x", "b"), node("Sub", "a b", "y")]
    assert np.abs(drawn(two, ROWS)[0]).min(axis=1).max() < 0.1 < drawn(two, ROWS)[0].std()
    body = helper.make_graph(
        [node("RandomUniformLike", "x", "d"), node("Identity", "go", "on")],
        "step",
        [helper.make_tensor_value_info("at", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("d", TensorProto.FLOAT, None)],
    )  # fmt: skip
    steps = [
        helper.make_node("Constant", [], ["n"], value_int=3),
        helper.make_node("Cast", ["n"], ["yes"], to=TensorProto.BOOL),
        helper.make_node("Loop", ["n", "yes"], ["y"], body=body),
    ]
    (rows,) = drawn(steps, {"x": np.zeros((4, 5), np.float32)})
    assert len(np.unique(rows)) == rows.size == 60


def test_a_type_and_any_seed():
    found = drawn([node("RandomNormalLike", "x", "y", dtype=10)], ROWS, (0, -3, 2**63 - 1))
    assert {one.dtype for one in found} == {np.dtype(np.float16)}
    assert all(np.isfinite(one).all() for one in found)


def test_a_tensor_of_unknown_rank():
    nodes = [node("Reshape", "x s", "r"), node("RandomUniformLike", "r", "y")]
    ends = {"x": (TensorProto.FLOAT, (4, 5)), "s": (TensorProto.INT64, ("k",))}
    proto = typed(nodes, ends, {"y": TensorProto.FLOAT})
    draw_by_seed(proto)
    feeds = {"x": np.zeros((4, 5), np.float32), "s": np.array([2, 5, 2]), "seed": np.array(1)}
    (found,) = ReferenceEvaluator(proto).run(None, feeds)
    assert found.shape == (2, 5, 2)
    assert len(np.unique(found)) == found.size


def test_the_input_gets_a_name_that_is_free_and_only_where_a_result_needs_it(tmp_path):
    taken = model([node("RandomNormalLike", "seed", "y")], {"seed": ("n", 3)})
    onnx.save(taken, tmp_path / "m.onnx")
    assert [one.name for one in load(tmp_path / "m.onnx").proto.graph.input] == ["seed", "seed_"]
    for nodes, opset in (
        ([node("RandomNormalLike", "x", "unread"), node("Relu", "x", "y")], 17),
        ([node("RandomNormalLike", "x", "y")], 9),
    ):
        proto = model(nodes, {"x": (3,)}, opset=opset)
        draw_by_seed(proto)
        assert [one.name for one in proto.graph.input] == ["x"]
