"""Indices that are known at run time alone: in range as ONNX Runtime, else an error of the call."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import model, node
from onnx import TensorProto, helper
from tvm_ffi import core

from ansor_deploy._tvm import tvm
from ansor_deploy.errors import ModelError

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
X, U = graphs.randn(0, 4, 8), graphs.randn(1, 2, 3)
BIG = np.arange(64 * 1024).reshape(64, 1024) % 1024  # enough for several threads


def contrib(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(" "), [output], domain="com.microsoft", **attributes)


# Of each operator: its node, indices that it takes, and single ones that it does not.
CASES = {
    "Gather": (node("Gather", "x iGather", "Gather", axis=1), [[0, -8], [7, 1]], [8, -9, 2**40]),
    "Scalar": (node("Gather", "x iScalar", "Scalar"), -1, [4, -5]),
    "GatherElements": (node("GatherElements", "x iGatherElements", "GatherElements"),
                       [[0, -4, 3]], [4, -5, -(2**62)]),
    "Parallel": (node("GatherElements", "wide iParallel", "Parallel", axis=1), BIG, [1024]),
    "GatherND": (node("GatherND", "x iGatherND", "GatherND"), [[-4, 7], [3, -8]], [8, -9]),
    "Batched": (node("GatherND", "x iBatched", "Batched", batch_dims=1),
                [[0], [7], [-8], [2]], [8, -9]),
    "ScatterElements": (node("ScatterElements", "x iScatterElements u", "ScatterElements"),
                        [[0, 1, 2], [3, -1, -4]], [4, -5, 2**40]),
    "ScatterND": (node("ScatterND", "x iScatterND s", "ScatterND", reduction="add"),
                  [[0], [-1]], [4, -5, 2**40]),
    "ReverseSequence": (node("ReverseSequence", "x iReverseSequence", "ReverseSequence",
                             time_axis=1, batch_axis=0), [0, 1, 5, 8], [9, -1]),
    "MaxUnpool": (node("MaxUnpool", "m iMaxUnpool", "MaxUnpool", kernel_shape=[2, 2],
                       strides=[2, 2]), [[[[0, 3], [8, 15]]]], [16, -1, 2**40]),
    "RoiAlign": (node("RoiAlign", "m b iRoiAlign", "RoiAlign", output_height=2,
                      output_width=2, sampling_ratio=2),
                 [0], [1, -1, 2**40]),
    "LSTM": (node("LSTM", "t w r - iLSTM", "LSTM", hidden_size=3, direction="reverse"),
             [2, 0], [3, -1]),
    "RotaryEmbedding": (contrib("RotaryEmbedding", "h iRotaryEmbedding c c", "RotaryEmbedding"),
                        [[0, 3]], [4, -1]),
}  # fmt: skip
FLOATS = {
    "x": X,
    "wide": graphs.randn(2, 64, 1024),
    "u": U,
    "s": graphs.randn(3, 2, 8),
    "m": graphs.randn(4, 1, 1, 2, 2),
    "b": np.array([[0, 0, 1, 1]], np.float32),
    "t": graphs.randn(5, 2, 2, 2),
    "w": graphs.randn(6, 1, 12, 2),
    "r": graphs.randn(7, 1, 12, 3),
    "h": graphs.randn(8, 1, 1, 2, 4),
    "c": graphs.randn(9, 4, 2),
    "images": np.array([[0, 0, 0, 1, 1]], np.float32),
}


@pytest.fixture(scope="module")
def library():
    """All cases in one library: its function, the inputs in order, and what should come out."""
    indices = {
        f"i{name}": np.array(given, np.int32 if name == "LSTM" else np.int64)
        for name, (_, given, _) in CASES.items()
    }
    feeds = {**FLOATS, **indices}
    nodes = [entry for entry, *_ in CASES.values()]
    nodes.append(node("MaxRoiPool", "m images", "MaxRoiPool", pooled_shape=[1, 1]))
    made = dict.fromkeys((*CASES, "MaxRoiPool"), "float32")
    proto = graphs.typed(nodes, feeds, made, opset=18)
    return built.main_of(built.compiled(proto)), feeds, graphs.run(proto, feeds)


def called(library, **changed):
    main, feeds, _ = library
    return main(*(tvm.runtime.tensor(value) for value in {**feeds, **changed}.values()))


def test_indices_in_range_are_looked_up_as_in_onnx_runtime(library):
    for have, want in zip(called(library), library[2], strict=True):
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "bad"), [(n, bad) for n in CASES for bad in CASES[n][2]])
def test_an_index_out_of_range_is_an_error(library, name, bad):
    indices = library[1][f"i{name}"].copy()
    indices.reshape(-1)[-1] = bad
    with pytest.raises(IndexError, match=f"{CASES[name][0].op_type}|Gather: .* is not in"):
        called(library, **{f"i{name}": indices})
    called(library)  # and nothing is left of it


@pytest.mark.parametrize("image", [1, -1, np.nan, np.inf, 1e30])
def test_the_image_of_a_region_must_exist(library, image):
    regions = FLOATS["images"].copy()
    regions[0, 0] = image
    with pytest.raises(IndexError, match=r"MaxRoiPool: the image of a region is not in 0 \.\. 0"):
        called(library, images=regions)


@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
def test_a_constant_index_out_of_range_is_refused(op):
    proto = model([node(op, "x i", "y")], {"x": (4, 8)}, constants={"i": np.array([[0, 4]])})
    with pytest.raises(ModelError, match=r"is not in -4 \.\. 3"):
        built.imported(proto)


def test_a_constant_index_counts_from_the_end():
    constants = {"i": np.array([[0, -1]]), "last": np.array(-1)}
    nodes = [
        node("GatherElements", "x i", "y"),
        node("Gather", "x i", "z"),
        node("Gather", "x last", "row"),
    ]
    proto = model(nodes, {"x": (4, 8)}, ["y", "z", "row"], constants)
    built.assert_like_oracle(proto)
    assert not any("in_range" in name for name in built.count_ops(proto))


def test_all_slices_in_their_order_are_the_data_itself():
    places = np.stack(np.indices((3, 4)), axis=-1).reshape(3, 1, 4, 2)
    net = model([node("GatherND", "x places", "y")], {"x": (3, 4, 5)}, constants={"places": places})
    built.assert_like_oracle(net)
    assert not any("gather_nd" in name for name in built.count_ops(net))


def test_a_branch_that_is_not_taken_may_look_anywhere():
    """Both branches of an If are computed: an index in one fails no call, and stays inside."""
    branches = (
        [node("Gather", f"x {index}", made), node("Abs", made, f"a{made}")]
        for index, made in (("i", "then"), ("j", "else"))
    )
    taken = graphs.either("c", "y", *branches, kind=(FLOAT, (2, 8)))
    inputs = {"x": (FLOAT, (4, 8)), "i": (INT64, (2,)), "j": (INT64, (2,)), "c": ("bool", ())}
    proto = graphs.typed([taken], inputs, {"y": (FLOAT, (2, 8))}, opset=18)
    good, bad = np.array([1, -1]), np.array([2**40, 0])
    for takes_first in (True, False):
        indices = {"i": good, "j": bad} if takes_first else {"i": bad, "j": good}
        feeds = {"x": X, **indices, "c": np.array(takes_first)}
        np.testing.assert_array_equal(built.run(proto, feeds)[0], np.abs(X[good]))


def test_counts_of_keys_and_places_to_write_to_are_in_range():
    nodes = [
        node("Attention", "q k k - - - n", "y", is_causal=1),
        node("TensorScatter", "past new at", "z", axis=1, mode="circular"),
    ]
    shapes = {"q": (1, 1, 2, 4), "k": (1, 1, 3, 4), "past": (1, 4, 2), "new": (1, 2, 2)}
    floats = {name: graphs.randn(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    feeds = {**floats, "n": np.array([3]), "at": np.array([7])}
    proto = graphs.typed(nodes, feeds, {"y": FLOAT, "z": FLOAT}, opset=24)
    library = built.main_of(built.compiled(proto)), feeds, graphs.run(proto, feeds)
    for have, want in zip(called(library), library[2], strict=True):
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-5, atol=1e-6)
    for name, bad in (("n", 4), ("n", -1), ("at", -1)):
        with pytest.raises(IndexError, match=r"is not in"):
            called(library, **{name: np.array([bad])})


def test_no_error_of_tvm_is_raised_on_the_way(monkeypatch):
    """At a process's first, TVM reads the symbols of its libraries: a fifth of a second."""

    def raised(error, _):
        pytest.fail(f"raised and caught: {error}")

    monkeypatch.setattr(core, "_WITH_APPEND_BACKTRACE", raised)
    indices = [("GatherElements", "wide", BIG.shape), ("Gather", "x", (2,))]
    nodes = [node(op, f"{data} i{op}", op, axis=1) for op, data, _ in indices]
    given = {"x": (FLOAT, (4, 8)), "wide": (FLOAT, BIG.shape)}
    given |= {f"i{op}": (INT64, shape) for op, _, shape in indices}
    built.imported(graphs.typed(nodes, given, dict.fromkeys(["GatherElements", "Gather"], FLOAT)))
