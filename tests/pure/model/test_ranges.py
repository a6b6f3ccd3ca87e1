"""Graphs whose inputs have any length: what counts is what the model makes of that length alone."""

import numpy as np
import pytest
from helpers.graphs import likeness, model, node, randn
from helpers.ranges import LONG, MOST, check, opened

from ansor_deploy.errors import ModelError
from ansor_deploy.model.batches import Span

IMAGES = {"x": (1, 4, LONG)}
ROWS = {"x": (1, LONG, 4)}


@pytest.mark.parametrize(
    "words",
    [
        {"pads": [1, 1]},
        {"strides": [2], "pads": [0, 1]},
        {"dilations": [2], "pads": [2, 2], "strides": [3]},
        {"auto_pad": "SAME_UPPER"},
    ],
)
def test_convolutions(words):
    check([node("Conv", "x w", "y", **words)], IMAGES, (12, 7, 5), {"w": randn(1, 6, 4, 3)})


@pytest.mark.parametrize(
    ("op", "taps", "step"), [("MaxPool", 2, 1), ("AveragePool", 2, 1), ("MaxPool", 3, 2)]
)
def test_what_same_lays_around_every_other_place(op, taps, step):
    """Before the first place it lays as much for any length, or for those that come in steps."""
    words = {"kernel_shape": [taps], "strides": [2], "auto_pad": "SAME_UPPER"}
    spread = {"x": (1, 4, Span(step, MOST, step))}
    check([node(op, "x", "y", **words)], spread, (12, 8, 2) if step > 1 else (12, 7, 1))


def test_bytes_behind_what_counts_are_zero_points():
    rows, images = {"x": (1, LONG, 4)}, {"x": (1, 4, LONG)}
    nodes = [node("DynamicQuantizeLinear", "x", "b s z")]
    conv = [*nodes, node("ConvInteger", "b w z", "i", pads=[1, 1]), node("Cast", "i", "y", to=1)]
    taps = (randn(1, 6, 4, 3) * 50).astype(np.int8)
    check(conv, images, constants={"w": taps})
    product = [
        *nodes,
        node("Transpose", "b", "t", perm=[0, 2, 1]),
        node("MatMulInteger", "t b z z", "i"),
        node("Cast", "i", "y", to=1),
    ]
    check(product, rows)


def test_what_is_as_large_shares_a_mask():
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1]),
        node("Conv", "c v", "d", pads=[1, 1]),
        node("AveragePool", "d", "y", kernel_shape=[3], pads=[1, 1], count_include_pad=1),
    ]
    constants = {"w": randn(1, 6, 4, 3), "v": randn(2, 4, 6, 3)}
    made = opened(model(nodes, {"x": (1, 4, "n")}, constants=constants), IMAGES)
    assert sum(one.op_type == "Less" for one in made.nodes) == 1


POOLS = [
    *(("MaxPool", words) for words in ({}, {"pads": [0, 0], "ceil_mode": 1})),
    ("AveragePool", {}),
    ("AveragePool", {"count_include_pad": 1}),
    ("AveragePool", {"pads": [1, 0], "ceil_mode": 1}),
    ("AveragePool", {"pads": [1, 0], "count_include_pad": 1, "ceil_mode": 1}),
    ("AveragePool", {"pads": [0, 0], "count_include_pad": 1, "ceil_mode": 1}),
]


@pytest.mark.parametrize(("op", "words"), POOLS)
def test_pools(op, words):
    words = {"kernel_shape": [3], "strides": [2], "pads": [1, 1], **words}
    check([node(op, "x", "y", **words)], IMAGES, opset=19)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_what_is_one_of_each_channel(op):
    check([node(op, "x", "y")], IMAGES)


def test_normalised_rows_and_channels():
    weights = {"s": randn(1, 4), "b": randn(2, 4)}
    check([node("LayerNormalization", "x s b", "y", axis=-1)], ROWS, constants=weights)
    check([node("InstanceNormalization", "x s b", "y")], IMAGES, constants=weights)


@pytest.mark.parametrize("opset", [7, 9])
def test_channels_by_what_they_were_in_training(opset):
    weights = {"s": randn(1, 4), "b": randn(2, 4), "m": randn(3, 4), "v": randn(4, 4) ** 2 + 1}
    words = {"spatial": 1} if opset < 9 else {}
    check([node("BatchNormalization", "x s b m v", "y", **words)], IMAGES, (12, 7), weights, opset)


@pytest.mark.parametrize("opset", [11, 18])
def test_a_stride_and_back_again(opset):
    nodes = [
        node("Conv", "x w", "c", strides=[2], pads=[1, 1]),
        node("Resize", "c none f", "r", mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
        node("Relu", "r", "y"),
    ]  # fmt: skip
    constants = {"w": randn(1, 6, 4, 3), "f": np.array([1, 1, 2], np.float32),
                 "none": np.zeros(0, np.float32)}  # fmt: skip
    check(nodes, IMAGES, (12, 8, 6), constants, opset)


def test_attention_and_what_torch_writes_behind_its_softmax():
    nodes = [
        node("MatMul", "x q", "a"),
        *likeness("a", "x"),
        node("IsNaN", "p", "n"),
        node("Where", "n zero p", "w"),
        node("MatMul", "w x", "y"),
    ]
    check(nodes, ROWS, (12, 7, 1), {"q": randn(1, 4, 4), "zero": np.float32(0)})


def test_sums_over_rows_of_a_softmax_of_which_not_all_count():
    """What lies behind is zeros along the axis of the softmax alone."""
    nodes = [
        *likeness("x", "x"),
        node("Transpose", "p", "u", perm=[0, 2, 1]),
        node("MatMul", "u x", "y"),
    ]
    check(nodes, ROWS, (12, 7, 1))


def test_a_softmax_of_nothing_and_its_product():
    nodes = [node("Slice", "x one end one", "k"), *likeness("x", "k"), node("MatMul", "p k", "y")]
    check(nodes, ROWS, (12, 2, 1), {"one": np.array([1]), "end": np.array([MOST])})


def test_a_softmax_of_all_axes_behind_one():
    check([node("Softmax", "x", "y", axis=1)], IMAGES, opset=11)
    check([node("Softmax", "x", "y", axis=1)], ROWS, opset=11)


def test_the_last_place_where_nothing_is_more_than_what_lies_behind():
    nodes = [node("Where", "c x low", "h"), node("ArgMax", "h", "i", axis=1, select_last_index=1),
             node("Cast", "i", "y", to=1)]  # fmt: skip
    constants = {"c": np.zeros((1, 1, 4), bool), "low": np.float32(-np.inf)}
    check(nodes, ROWS, constants=constants)


def test_a_triangle_of_what_counts():
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("MatMul", "x t", "s"),
        node("Trilu", "s", "y", upper=0),
    ]
    check(nodes, ROWS)


@pytest.mark.parametrize("axis", [-1, 1])
def test_the_class_of_each_row_of_as_many_as_count(axis):
    nodes = [node("ArgMax", "x", "i", axis=2, keepdims=0), node("OneHot", "i d v", "y", axis=axis)]
    check(nodes, ROWS, constants={"d": np.array(4), "v": np.float32([-1, 2])})


def test_a_diagonal_beside_what_counts():
    nodes = [node("Squeeze", "x one", "r"), node("EyeLike", "r", "d", k=1)]
    check([*nodes, node("Add", "r d", "y")], ROWS, constants={"one": np.array([0])})


def test_what_begins_with_the_last_row_that_counts():
    check([node("CumSum", "x a", "y", reverse=1)], ROWS, constants={"a": np.array(1)})
    turned = node("ReverseSequence", "x n", "y", batch_axis=0, time_axis=1)
    check([node("Shape", "x", "n", start=1, end=2), turned], ROWS)


def test_logarithms_of_sums():
    check([node("Mul", "x x", "q"), node("ReduceLogSum", "q", "y", axes=[1])], ROWS, opset=17)


def test_spectra_of_frames():
    constants = {"hop": np.array(2), "window": randn(1, 4)}
    check([node("STFT", "x hop window", "y")], {"x": (2, Span(4, MOST), 1)}, (12, 7, 4), constants)


def test_bytes_by_the_least_and_the_most_that_counts():
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("MatMulInteger", "q w z", "m"),
        node("Cast", "m", "f", to=1),
        node("Mul", "f s", "y"),
    ]
    check(nodes, ROWS, constants={"w": np.arange(16, dtype=np.int8).reshape(4, 4) - 8})


def test_two_inputs_of_one_length():
    nodes = [node("Add", "x z", "s"), node("ReduceMean", "s axes", "y")]
    check(nodes, {**ROWS, "z": (1, LONG, 1)}, constants={"axes": np.array([1])})


def test_what_has_no_rule_is_named():
    nodes = [node("Resize", "x - f", "y", mode="cubic", exclude_outside=1)]
    constants = {"f": np.array([1, 1, 2], np.float32)}
    proto = model(nodes, {"x": (1, 4, "n")}, constants=constants)
    with pytest.raises(ModelError, match=r"node 'y' \(Resize\): .* the length of its inputs"):
        opened(proto, IMAGES)


@pytest.mark.parametrize(
    "words",
    [
        {"strides": [2]},
        {"strides": [2], "pads": [1, 0], "output_padding": [1]},
        {"dilations": [2], "pads": [1, 2]},
    ],
)
def test_transposed_convolutions(words):
    check(
        [node("ConvTranspose", "x w", "y", **words)], IMAGES, (12, 7, 5), {"w": randn(1, 4, 6, 3)}
    )


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_what_lies_around_is_repeated(mode):
    pads = np.array([0, 0, 2, 0, 1, 3], np.int64)
    check([node("Pad", "x pads", "y", mode=mode)], IMAGES, constants={"pads": pads}, opset=19)


@pytest.mark.parametrize("to", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_images_of_other_sizes(mode, to):
    words = {"mode": mode, "coordinate_transformation_mode": to, "nearest_mode": "floor"}
    for scale in (0.5, 1.5, 2.0):
        scales = np.array([1, 1, scale], np.float32)
        check([node("Resize", "x - s", "y", **words)], IMAGES, constants={"s": scales})


def test_an_image_as_large_as_another():
    nodes = [
        node("AveragePool", "x", "p", kernel_shape=[2], strides=[2]),
        node("Shape", "x", "s"),
        node("Resize", "p - - s", "y", mode="linear", coordinate_transformation_mode="half_pixel"),
    ]
    check(nodes, IMAGES)


@pytest.mark.parametrize("equation", ["bin,bjn->bij", "bin,bjn", "...in,...jn->...ij"])
def test_products_by_letters(equation):
    check([node("Einsum", "x z", "y", equation=equation)], {"x": (1, LONG, 4), "z": (1, LONG, 4)})


def test_sums_by_letters():
    check(
        [node("Einsum", "x z", "y", equation="bin,bim->nbm")],
        {"x": (1, LONG, 4), "z": (1, LONG, 2)},
    )


def test_a_mask_of_what_was_dropped():
    nodes = [node("Dropout", "x", "d m"), node("Where", "m d z", "y")]
    check(nodes, ROWS, constants={"z": np.zeros(1, np.float32)})


def test_a_length_that_is_computed_twice_is_one():
    """As a padded convolution of stride two makes it, and as torch computes it for a Reshape."""
    nodes = [
        node("Conv", "x w", "c", strides=[2], pads=[1, 1]),
        node("Shape", "x", "n", start=2),
        node("Sub", "n one", "m"),
        node("Div", "m two", "h"),
        node("Add", "h one", "k"),
        node("Concat", "first k", "s", axis=0),
        node("Reshape", "c s", "y"),
    ]
    numbers = {"one": [1], "two": [2], "first": [1, 2, 3]}
    constants = {name: np.array(of, np.int64) for name, of in numbers.items()}
    check(nodes, IMAGES, constants={"w": randn(1, 6, 4, 3), **constants})


def test_what_is_cut_off_where_a_length_is_odd():
    """What is scaled down and up again, and made as long as it was."""
    nodes = [
        node("MaxPool", "x", "p", kernel_shape=[2], strides=[2], pads=[0, 1]),
        node("ConvTranspose", "p w", "t", strides=[2]),
        node("Shape", "t", "tn", start=2),
        node("Shape", "x", "n", start=2),
        node("Sub", "n tn", "d"),
        node("Concat", "zeros d", "pads", axis=0),
        node("Pad", "t pads", "y"),
    ]
    constants = {"w": randn(1, 4, 4, 2), "zeros": np.zeros(5, np.int64)}
    check(nodes, IMAGES, constants=constants)


def test_sizes_that_are_computed_as_floats():
    """As torch's older exporter writes the padding of a strided convolution."""
    nodes = [
        node("Shape", "x", "n", start=2),
        node("Cast", "n", "f", to=1),
        node("Div", "f two", "halves"),
        node("Ceil", "halves", "places"),
        node("Sub", "places one", "before"),
        node("Mul", "before two", "last"),
        node("Add", "last three", "end"),
        node("Sub", "end f", "lacks"),
        node("Clip", "lacks zero", "more"),
        node("Cast", "more", "behind", to=7),
        node("Concat", "zeros behind", "pads", axis=0),
        node("Pad", "x pads", "p"),
        node("Conv", "p w", "y", strides=[2]),
    ]
    numbers = {"one": [1], "two": [2], "three": [3]}
    constants = {name: np.array(of, np.float32) for name, of in numbers.items()}
    constants |= {"zero": np.float32(0), "zeros": np.zeros(5, np.int64), "w": randn(1, 6, 4, 3)}
    check(nodes, IMAGES, (12, 8, 7), constants)


def test_rows_that_are_filled_up_to_whole_blocks():
    """As attention does it that looks at blocks of four."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Neg", "n", "m"),
        node("Mod", "m four", "lacks"),
        node("Concat", "three lacks one", "pads", axis=0),
        node("Pad", "x pads", "p"),
        node("Reshape", "p blocks", "b"),
        node("ReduceSum", "b two", "y"),
    ]
    constants = {
        "four": [4],
        "three": [0, 0, 0, 0],
        "one": [0],
        "blocks": [1, -1, 4, 4],
        "two": [2],
    }
    constants = {name: np.array(of, np.int64) for name, of in constants.items()}
    check(nodes, ROWS, (12, 7, 5, 3), constants)


def test_numbers_from_a_half_on():
    """As middles of patches are counted."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Squeeze", "n", "k"),
        node("Cast", "k", "f", to=1),
        node("Range", "half f one", "r"),
        node("Unsqueeze", "r axis", "u"),
        node("Mul", "x u", "y"),
    ]
    constants = {"half": np.float32(0.5), "one": np.float32(1), "axis": np.array([1])}
    check(nodes, ROWS, constants=constants)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_places_out_of_channels(mode):
    check([node("DepthToSpace", "x", "y", blocksize=2, mode=mode)], {"x": (1, 8, LONG, 3)})


def test_an_image_of_which_one_side_becomes_as_long_as_the_other():
    """The former is a whole number of times as long, and the latter no part of what it was."""
    nodes = [
        node("Shape", "x", "n", start=2, end=3),
        node("Mul", "n two", "m"),
        node("Concat", "first m n", "s", axis=0),
        node("Resize", "x - - s", "y", mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    ]  # fmt: skip
    constants = {"two": np.array([2]), "first": np.array([1, 4])}
    check(nodes, {"x": (1, 4, LONG, 20)}, constants=constants)


@pytest.mark.parametrize("axis", [1, 2])
def test_elements_of_rows_are_looked_up_by_rows_of_fixed_length(axis):
    """As the best of a list are, wherever its end is."""
    at = np.array([[[0, 2, -1, -3], [1, -2, 3, 0], [3, 3, 2, -4]]])
    check([node("GatherElements", "x at", "y", axis=axis)], ROWS, constants={"at": at})


def test_sizes_that_an_exporter_computed_at_once_are_those_that_convolutions_come_to():
    """(n - 7) // 4 rows are left by two convolutions of three at every second."""
    constants = {"v": randn(0, 4, 4, 3), "w": randn(1, 4, 4, 3)}
    constants |= {"seven": np.array([7]), "four": np.array([4]), "one": np.array([1])}
    constants |= {"heads": np.array([-1]), "pairs": np.array([2])}
    nodes = [node("Shape", "x", "n", start=2, end=3), node("Sub", "n seven", "m")]
    nodes += [node("Div", "m four", "k"), node("Add", "k one", "rows")]
    nodes += [node("Concat", "one rows heads pairs", "sizes", axis=0)]
    nodes += [node("Conv", "x v", "c", strides=[2]), node("Conv", "c w", "d", strides=[2])]
    nodes += [node("Transpose", "d", "t", perm=[0, 2, 1]), node("Reshape", "t sizes", "y")]
    check(nodes, {"x": (1, 4, Span(9, 40))}, (40, 9, 22), constants)
