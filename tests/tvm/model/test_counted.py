"""Tensors of which a run decides the size are what ONNX Runtime makes of them, whatever it is."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported
from helpers.graphs import node
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.devices.bare import open_bare

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
CONSTANTS = {
    "none": np.array(0), "first": np.array([0]), "one": np.array([1]), "three": np.array([3]),
    "last": np.array([-1]), "end": np.array([2**62]), "five": np.array([-1, 5]),
    "all": np.array([12]), "pads": np.array([1, 0, 2, 1]), "step": np.array(1),
    "weights": np.ones((5, 3), np.float32), "zeros": np.zeros((12, 5), np.float32),
    "some": np.array(0.3, np.float32), "list": graphs.randn(9, 40),
}  # fmt: skip
# Rows of x that a mask chooses: places p, rows r, their number n.
CHOSEN = [
    node("NonZero", "mask", "found"), node("Squeeze", "found first", "p"),
    node("Gather", "x p", "r", axis=0), node("Shape", "r", "size"),
    node("Gather", "size first", "n", axis=0), node("Squeeze", "n first", "count"),
]  # fmt: skip
USES = {
    "sums": (
        node("ReduceSum", "r first", "a", keepdims=0), node("ReduceMean", "r", "b", axes=[0]),
        node("ReduceMax", "r", "c", axes=[1]), node("Mul", "r r", "d"),
        node("Softmax", "r", "e", axis=0),
    ),
    "shapes": (
        node("Identity", "size", "a"), node("Reshape", "r last", "b"),
        node("Transpose", "r", "t", perm=[1, 0]), node("Reshape", "t last", "c"),
        node("Reshape", "c five", "d"), node("Flatten", "t", "e", axis=0),
    ),
    "parts": (
        node("Concat", "r x r", "a", axis=0), node("Slice", "r first three first", "b"),
        node("Slice", "r last end first", "c"), node("Slice", "r one last first", "d"),
        node("Sub", "all n", "rest"), node("Concat", "first first rest first", "w", axis=0),
        node("Pad", "r w", "e"), node("Pad", "r pads", "f"),
    ),
    "shifts": (
        node("Transpose", "r", "t"), node("MatMul", "r t", "s"), node("Concat", "s s", "w", axis=1),
        node("Add", "n n", "m"), node("Concat", "m n", "k", axis=0), node("Reshape", "w k", "a"),
    ),
    "orders": (
        node("Slice", "r first one one", "column"), node("Squeeze", "column one", "q"),
        node("Concat", "n three", "k", axis=0), node("ReduceMin", "k", "least", keepdims=1),
        node("TopK", "q least", "a b", axis=0), node("TopK", "q least", "c d", axis=0, largest=0),
        node("Range", "none count step", "e"), node("ConstantOfShape", "n", "f"),
    ),
    "products": (
        node("MatMul", "r weights", "a"), node("Transpose", "r", "t"), node("MatMul", "t r", "b"),
        node("Unsqueeze", "p one", "rows"), node("ScatterND", "zeros rows r", "c"),
        node("GatherND", "x rows", "d"), node("Slice", "x first one first", "s"),
        node("Expand", "s size", "e"), node("ArgMax", "r", "top", axis=1),
        node("GatherND", "r top", "f", batch_dims=1),
    ),
    "again": (
        node("Greater", "r some", "large"), node("NonZero", "large", "a"),
        node("Transpose", "a", "places", perm=[1, 0]), node("GatherND", "r places", "b"),
        node("Compress", "x mask", "c", axis=0), node("Compress", "x mask", "d"),
        # Of a list that is shorter than there could be places, as `masked_scatter` is exported.
        node("Shape", "places", "many", end=1), node("Slice", "list first many", "listed"),
        node("ScatterND", "zeros places listed", "e"),
    ),
}  # fmt: skip
WHOLE = {"shapes": "a", "orders": "bde", "again": "a"}  # outputs of whole numbers


def assert_like_oracle(proto, draws, folder):
    """One library is right on inputs that make results of several sizes."""
    (interface,) = imported(proto).interfaces
    compiled(proto).export(path := folder / "model.so", HOST)
    with open_bare() as bare:
        library = bare.load(path, {**interface.to_json(), "target": HOST.to_json()})
        for feed in draws:
            have, want = library(**feed), graphs.run(proto, feed)
            assert have.keys() == {value.name for value in proto.graph.output}
            for value, expected in zip(proto.graph.output, want, strict=True):
                made = have[value.name]
                assert (made.shape, made.dtype) == (expected.shape, expected.dtype), value.name
                np.testing.assert_allclose(made, expected, 1e-5, 1e-6, err_msg=value.name)


def draws(shares=(0.4, 0.7, 1.0)):
    for seed, share in enumerate(shares):
        yield {
            "x": graphs.randn(seed, 12, 5),
            "mask": np.random.default_rng(seed).random(12) < share,
        }


@pytest.mark.parametrize("use", USES)
def test_what_reads_rows_that_were_chosen(use, tmp_path):
    nodes = [*CHOSEN, *USES[use]]
    names = sorted(
        {name for one in USES[use] for name in one.output if len(name) == 1} & set("abcdef")
    )
    outputs = {name: INT64 if name in WHOLE.get(use, "") else FLOAT for name in names}
    inputs = {"x": (FLOAT, [12, 5]), "mask": (BOOL, [12])}
    shares = (0.4, 0.7, 1.0) if use == "orders" else (0.4, 0.7, 1.0, 0.0)
    read = {name for one in nodes for name in one.input}
    constants = {name: value for name, value in CONSTANTS.items() if name in read}
    assert_like_oracle(graphs.typed(nodes, inputs, outputs, constants), draws(shares), tmp_path)


@pytest.mark.parametrize("words", [{}, {"axis": 1}])
@pytest.mark.parametrize("ordered", [0, 1])
def test_elements_that_differ(ordered, words, tmp_path):
    nodes = [node("Unique", "x", "y i v c", sorted=ordered, **words)]
    proto = graphs.typed(nodes, {"x": (INT64, [2, 9])}, dict.fromkeys("yivc", INT64), {})
    feeds = ({"x": np.random.default_rng(n).integers(0, n, (2, 9))} for n in (1, 2, 5, 50))
    assert_like_oracle(proto, feeds, tmp_path)


def test_a_branch_that_counts(tmp_path):
    empty = numpy_helper.from_array(np.zeros(0, np.int64))
    then = [node("Constant", "", "e", value=empty)]
    other = [
        node("ReduceMax", "r", "most", axes=[1], keepdims=0), node("Greater", "most some", "l"),
        node("NonZero", "l", "z"), node("Gather", "z none", "e", axis=0),
    ]  # fmt: skip
    nodes = [
        *CHOSEN, node("Equal", "count none", "is_none"),
        graphs.either("is_none", "y", then, other, INT64),
    ]  # fmt: skip
    inputs = {"x": (FLOAT, [12, 5]), "mask": (BOOL, [12])}
    constants = {name: CONSTANTS[name] for name in ("none", "first", "some")}
    proto = graphs.typed(nodes, inputs, {"y": INT64}, constants)
    assert_like_oracle(proto, draws((0.4, 0.0, 1.0)), tmp_path)


# Images, boxes, classes and how many are kept at most.
SUPPRESSIONS = ((1, 50, 1, 10), (2, 37, 3, 1000), (1, 1000, 20, 5))


@pytest.mark.parametrize("centers", [0, 1])
@pytest.mark.parametrize("sizes", SUPPRESSIONS)
def test_suppression_keeps_the_boxes_that_onnx_runtime_keeps(sizes, centers, tmp_path):
    images, boxes, classes, most = sizes
    nodes = [
        node("NonMaxSuppression", "boxes scores most over above", "y", center_point_box=centers)
    ]
    limits = {"most": np.array(most), "over": np.float32(0.3), "above": np.float32(0.2)}
    constants = {name: np.asarray(value) for name, value in limits.items()}
    inputs = {"boxes": (FLOAT, [images, boxes, 4]), "scores": (FLOAT, [images, classes, boxes])}
    proto = graphs.typed(nodes, inputs, {"y": INT64}, constants)
    drawn = (with_equal_scores(seed, *sizes[:3], scale) for seed, scale in enumerate((1, 0.5, 0)))
    assert_like_oracle(proto, drawn, tmp_path)


def with_equal_scores(seed, images, boxes, classes, scale):
    random = np.random.default_rng(seed)
    corner, size = (
        random.uniform(0, 10, (images, boxes, 2)),
        random.uniform(0.5, 3, (images, boxes, 2)),
    )
    scores = random.integers(0, 50, (images, classes, boxes)) / 50 * scale
    made = {"boxes": np.concatenate([corner, corner + size], -1), "scores": scores}
    return {name: value.astype(np.float32) for name, value in made.items()}


def test_what_is_counted_of_an_operator_of_which_onnx_knows_no_shapes(tmp_path):
    nodes = [
        helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"), node("NonZero", "g", "n"),
        node("Transpose", "n", "t", perm=[1, 0]), node("GatherND", "g t", "y"),
    ]  # fmt: skip
    proto = graphs.typed(nodes, {"x": (FLOAT, [12, 5])}, {"y": FLOAT}, {})
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    feeds = ({"x": np.maximum(graphs.randn(seed, 12, 5), seed)} for seed in range(3))
    assert_like_oracle(proto, feeds, tmp_path)
