"""ArgMax and ArgMin along any axis are right, and two reductions that any rule takes."""

import numpy as np
from helpers.built import HOST, imported, run
from helpers.graphs import node, typed
from onnx import TensorProto

from ansor_deploy._tvm import collect, tvm
from ansor_deploy.model.relax.extract import extract

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
