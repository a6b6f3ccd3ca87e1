"""PyTorch's `repeat_interleave` with counts that a run computes: a loop over sequences."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported
from helpers.graphs import node
from onnx import TensorProto, helper

from ansor_deploy.devices.bare import open_bare
from ansor_deploy.errors import ModelError

BOOL, FLOAT, INT64 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64


def constant(name, value):
    return node("Constant", "", name, value=helper.make_tensor(name, INT64, [len(value)], value))


def repeated(axis=0, shape=(3, 4), place=""):
    """The rows of x along an axis, each as often as d says. place: where a step puts its rows."""
    before, after = [*shape[:axis], 1], list(shape[axis + 1 :])
    body = [
        node("SequenceAt", "counts i", "count"), node("SequenceAt", "rows i", "row"),
        constant("next", [axis + 1]), node("Unsqueeze", "row next", "open"),
        constant("before", before), constant("after", after),
        node("Concat", "before count after", "sizes", axis=0), node("Shape", "sizes", "rank"),
        node("ConstantOfShape", "rank", "ones", value=helper.make_tensor("one", INT64, [1], [1])),
        constant("below", [-1]), node("Mul", "ones below", "others"),
        node("Equal", "sizes others", "kept"), node("Where", "kept ones sizes", "wanted"),
        node("Expand", "open wanted", "wide"),
        constant("flat", [*before[:-1], -1, *after]), node("Reshape", "wide flat", "part"),
        node("SequenceInsert", f"some part {place}", "more"), node("Identity", "on", "still"),
    ]  # fmt: skip
    sequence = helper.make_tensor_sequence_value_info("some", FLOAT, None)
    result = helper.make_tensor_sequence_value_info("more", FLOAT, None)
    ends = [helper.make_tensor_value_info(*one, ()) for one in (("i", INT64), ("on", BOOL))]
    still = helper.make_tensor_value_info("still", BOOL, ())
    loop = helper.make_graph(body, "body", [*ends, sequence], [still, result])
    steps = [
        node("Cast", "d", "n", to=INT64), node("Shape", "n", "size"),
        node("ConstantOfShape", "size", "each", value=helper.make_tensor("o", INT64, [1], [1])),
        node("SplitToSequence", "n each", "counts", axis=0),
        node("SplitToSequence", "x each", "rows", axis=axis),
        node("SequenceEmpty", "", "none", dtype=FLOAT),
        node("Loop", "size true none", "all", body=loop),
        node("ConcatFromSequence", "all", "z", axis=axis), node("Relu", "z", "y"),
    ]  # fmt: skip
    inputs = {"x": (FLOAT, shape), "d": (FLOAT, (shape[axis],))}
    return graphs.typed(steps, inputs, {"y": FLOAT}, {"true": np.True_, "first": np.int64(0)})


@pytest.mark.parametrize(("axis", "shape"), [(0, (3, 4)), (1, (2, 3, 2)), (0, (3,))])
def test_rows_are_repeated_as_often_as_a_run_says(axis, shape, tmp_path):
    proto = repeated(axis, shape)
    (interface,) = imported(proto).interfaces
    compiled(proto).export(tmp_path / "model.so", HOST)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    with open_bare() as bare:
        manifest = {**interface.to_json(), "target": HOST.to_json()}
        library = bare.load(tmp_path / "model.so", manifest)
        for counts in ([1, 0, 2], [0, 5, 0], [300, 200, 100]):
            feed = {"x": x, "d": np.array(counts, np.float32)}
            np.testing.assert_array_equal(library(**feed)["y"], graphs.run(proto, feed)[0])


def test_rows_in_another_order_are_no_repeats():
    with pytest.raises(ModelError):
        imported(repeated(place="first"))
