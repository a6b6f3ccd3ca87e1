"""ArgMax and ArgMin along any axis are right, and two reductions that any rule takes."""

import numpy as np
from helpers.built import HOST, imported, run
from helpers.graphs import node, typed
from onnx import TensorProto

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.marks.partial_lanes import PARTIAL_LANES
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.default_schedule import default_schedule

X = np.random.default_rng(0).integers(0, 5, (3, 7, 19)).astype(np.float32)  # many are equal


def places():
    nodes = [
        node("ArgMax", "x", "middle", axis=1),
        node("ArgMin", "x", "first", axis=0, keepdims=0),
        node("ArgMax", "x", "last", axis=-1, keepdims=0, select_last_index=1),
    ]
    outputs = dict.fromkeys(["middle", "first", "last"], TensorProto.INT64)
    return typed(nodes, {"x": (TensorProto.FLOAT, X.shape)}, outputs, opset=20)


def test_places_along_any_axis_are_right():
    middle, first, last = run(places(), {"x": X})
    np.testing.assert_array_equal(middle, X.argmax(1, keepdims=True))
    np.testing.assert_array_equal(first, X.argmin(0))
    np.testing.assert_array_equal(last, 18 - X[..., ::-1].argmax(-1))


def test_no_stage_has_several_results():
    tasks = extract(imported(places()).mod, HOST).values()
    blocks = [block for task in tasks for block in collect(task.mod["main"], tvm.s_tir.SBlock)]
    assert sum(block.init is not None for block in blocks) == 6
    assert {len(block.writes) for block in blocks} <= {0, 1}


def test_both_stages_go_along_rows():
    """The second reads the extreme of each row as well: a value a row, along which nothing goes."""
    nodes = [node("ArgMax", "x", "y", axis=1)]
    shapes = {"x": (TensorProto.FLOAT, (64, 512))}
    proto = typed(nodes, shapes, {"y": TensorProto.INT64}, opset=20)
    (task,) = extract(imported(proto).mod, HOST).values()
    loops = collect(default_schedule(task.mod, HOST).mod["main"], tirx.For)
    assert sum(PARTIAL_LANES in loop.annotations for loop in loops) == 2
