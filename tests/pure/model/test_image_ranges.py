"""Images of any size: resized, sampled, and with what makes their sizes whole laid around."""

import numpy as np
import pytest
from helpers.graphs import model, node, randn
from helpers.ranges import LONG, check, opened
from onnx import TensorProto

from ansor_deploy.model.batches import Span

TO_THE_LEFT = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@pytest.mark.parametrize(("side", "times"), [(10, 0.7), (20, 0.7)])
def test_a_side_of_fixed_length_beside_an_open_one_is_as_long_as_float32_makes_it(side, times):
    scales = np.array([1, 1, 2, times], np.float32)
    nodes = [node("Resize", "x - s", "y", mode="nearest", **TO_THE_LEFT)]
    check(nodes, {"x": (1, 4, LONG, side)}, constants={"s": scales})


def test_a_side_of_fixed_length_beside_an_open_one_has_the_size_that_it_is_given():
    nodes = [
        node("Shape", "x", "n", start=2, end=3),
        node("Mul", "n two", "m"),
        node("Concat", "first m last", "s", axis=0),
        node("Resize", "x - - s", "y", mode="nearest", **TO_THE_LEFT),
    ]
    constants = {"two": np.array([2]), "first": np.array([1, 4]), "last": np.array([15])}
    check(nodes, {"x": (1, 4, LONG, 11)}, constants=constants)


def test_a_mean_of_an_image_is_summed_by_rows():
    """One sum of 640 x 640 equal numbers was off by 0.02%."""
    proto = model([node("ReduceMean", "x", "y", axes=[2, 3])], {"x": (1, 4, "h", "w")})
    made = [one.op_type for one in opened(proto, {"x": (1, 4, LONG, LONG)}).nodes]
    assert made.count("ReduceSum") == 2
    check([node("ReduceMean", "x", "y", axes=[2, 3])], {"x": (1, 4, LONG, 5)}, opset=17)


@pytest.mark.parametrize("outside", ["zeros", "border"])
@pytest.mark.parametrize("corners", [0, 1])
def test_images_are_sampled_between_their_own_edges(outside, corners):
    at = np.clip(randn(1, 1, 6, 5, 2), -1.2, 1.2)
    words = {"padding_mode": outside, "align_corners": corners}
    nodes = [node("GridSample", "x at", "y", mode="linear", **words)]
    check(nodes, {"x": (1, 2, 5, LONG)}, constants={"at": at}, opset=20)


@pytest.mark.parametrize("where", ["half_pixel", "pytorch_half_pixel", "align_corners"])
def test_images_are_resized_by_cubic_interpolation(where):
    scales = np.array([1, 1, 1.5, 2.5], np.float32)
    words = {"mode": "cubic", "coordinate_transformation_mode": where}
    check([node("Resize", "x - s", "y", **words)], {"x": (1, 4, LONG, 5)}, constants={"s": scales})


@pytest.mark.parametrize("mode", ["cubic", "linear", "nearest"])
def test_tables_are_resized_for_the_size_of_an_image(mode):
    nodes = [
        node("Shape", "x", "n", start=2),
        node("Concat", "first n", "s", axis=0),
        node("Resize", "table - - s", "t", mode=mode, cubic_coeff_a=-0.6),
        node("Add", "x t", "y"),
    ]
    constants = {"first": np.array([1, 4]), "table": randn(1, 1, 4, 5, 3)}
    check(nodes, {"x": (1, 4, LONG, 7)}, constants=constants)


def test_a_line_of_numbers_is_as_long_as_the_image():
    """As `linspace` is exported: a few numbers, of which a run decides how many count."""
    nodes = [
        node("Shape", "x", "list", start=2, end=3),
        node("Squeeze", "list", "n"),
        node("Range", "zero n one", "line"),
        node("Cast", "line", "places", to=TensorProto.FLOAT),
        node("Mul", "places tenth", "shares"),
        node("Reshape", "shares minus", "flat"),
        node("ReduceSum", "flat", "sum", keepdims=0),
        node("Add", "x sum", "y"),
    ]
    numbers = {"zero": np.array(0), "one": np.array(1), "minus": np.array([-1])}
    check(nodes, {"x": (1, 4, LONG)}, constants={**numbers, "tenth": np.float32(0.1)})


def test_a_number_that_follows_from_a_fixed_side_decides_how_often_rows_are_repeated():
    """As exporters write `repeat_interleave`: the repeats are a row of OneHot."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Concat", "one n", "values", axis=0),
        node("OneHot", "at five values", "list"),
        node("Reshape", "list minus", "repeats"),
        node("Tile", "table repeats", "t"),
        node("Reshape", "t form", "rows"),
        node("MatMul", "x rows", "y"),
    ]
    constants = {
        "one": np.array([1]), "at": np.array([2]), "five": np.array(5), "minus": np.array([-1]),
        "table": randn(1, 1, 3, 1, 5, 6), "form": np.array([3, 1, 20, 6]),
    }  # fmt: skip
    check(nodes, {"x": (3, 4, LONG, 20)}, constants=constants)


def padded(name, side):
    """Nodes that pad the sides of an image to whole windows of 4; `n` is the side, `m` padded."""
    return [
        node("Shape", name, "n", start=1, end=2),
        node("Mod", "n four", "rest"),
        node("Sub", "four rest", "less"),
        node("Mod", "less four", "more"),
        node("Concat", f"before {side} zero", "pads", axis=0),
        node("Pad", f"{name} pads", "wide"),
        node("Shape", "wide", "m", start=1, end=2),
        node("Div", "m four", "k"),
    ]


NUMBERS = {"one": [1], "three": [3], "four": [4], "minus": [-1], "zero": [0]}


def test_rows_are_padded_to_whole_windows_and_cut_again():
    nodes = [
        *padded("x", "more"),
        node("Concat", "k four three", "split", axis=0),
        node("Reshape", "wide split", "parts"),
        node("ReduceMax", "parts", "most", axes=[1]),
        node("Sub", "parts most", "apart"),
        node("Concat", "one m three", "whole", axis=0),
        node("Reshape", "apart whole", "again"),
        node("Slice", "again zero n one", "y"),
    ]
    numbers = {**NUMBERS, "before": [0] * 4}
    constants = {name: np.array(one) for name, one in numbers.items()}
    check(nodes, {"x": (1, LONG, 3)}, constants=constants, opset=17)


def test_windows_of_images_that_are_padded_are_rows_for_a_while():
    """As in Swin and Florence."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("MatMul", "x t", "alike"),
        node("Reshape", "alike pixels", "square"),
        *padded("square", "more more"),
        node("Concat", "one k four k four one", "split", axis=0),
        node("Reshape", "wide split", "parts"),
        node("Transpose", "parts", "turned", perm=[0, 1, 3, 2, 4, 5]),
        node("Reshape", "turned row", "rows"),
        node("Concat", "minus k k four four one", "joined", axis=0),
        node("Reshape", "rows joined", "windows"),
        node("Transpose", "windows", "image", perm=[0, 1, 3, 2, 4, 5]),
        node("Concat", "minus m m one", "whole", axis=0),
        node("Reshape", "image whole", "again"),
        node("Slice", "again zero n one", "y"),
    ]
    numbers = {**NUMBERS, "before": [0] * 5, "row": [-1, 16, 1], "pixels": [1, 0, -1, 1]}
    constants = {name: np.array(one) for name, one in numbers.items()}
    proto = model(nodes, {"x": (1, "n", 3)}, constants=constants, opset=17)
    assert opened(proto, {"x": (1, LONG, 3)}).shapes["y"] == (1, 12, 12, 1)


def test_rows_are_repeated_as_often_as_a_run_says():
    """As `repeat_interleave` is exported, for each of the objects that a decoder is asked for."""
    nodes = [
        node("Shape", "x", "n", start=2),
        node("Concat", "one n", "values", axis=0),
        node("OneHot", "at three values", "list"),
        node("Reshape", "list minus", "repeats"),
        node("Tile", "table repeats", "t"),
        node("Add", "x t", "y"),
    ]
    numbers = {"one": np.array([1]), "at": np.array([-1]), "minus": np.array([-1])}
    constants = {**numbers, "three": np.array(3), "table": randn(1, 1, 4, 1)}
    check(nodes, {"x": (1, 4, LONG)}, constants=constants)


def test_an_image_for_each_row_is_sampled_at_the_places_of_the_row():
    """As the likeness of all pixels of two images is, in what finds motion."""
    nodes = [
        node("Reshape", "x four", "image"),
        node("Reshape", "x two", "at"),
        node("GridSample", "image at", "s", mode="linear"),
        node("Reshape", "s rows", "y"),
    ]
    numbers = {"four": [-1, 1, 2, 4], "two": [-1, 2, 2, 2], "rows": [1, -1, 4]}
    constants = {name: np.array(one) for name, one in numbers.items()}
    check(nodes, {"x": (1, LONG, 8)}, constants=constants, opset=20)


def test_places_in_images_are_as_many_as_a_run_gives():
    nodes = [node("GridSample", "image at", "y", mode="linear")]
    image = {"image": randn(1, 1, 2, 5, 7)}
    check(nodes, {"at": (1, LONG, 3, 2)}, constants=image, opset=20)


def test_a_border_that_a_multiple_of_the_steps_lacks_is_none():
    """Exporters write (8 - n % 8) % 8, which is 8 % 8 where images come in steps of 8."""
    nodes = [
        node("Shape", "x", "n", start=2, end=3),
        node("Mod", "n four", "over"),
        node("Sub", "four over", "less"),
        node("Mod", "less four", "more"),
        node("Concat", "before more", "pads", axis=0),
        node("Pad", "x pads", "p"),
        node("Reshape", "p s", "y"),
    ]
    constants = {"four": np.array([4]), "before": np.zeros(5, np.int64), "s": np.array([3, -1, 4])}
    check(nodes, {"x": (1, 3, Span(4, 12, 4))}, (12, 8, 4), constants=constants)


def in_groups(count):
    """A norm of groups of channels as exporters write it: each group is a row for a while."""
    nodes = [
        node("Reshape", "x rows", "r"), node("InstanceNormalization", "r s b", "n"),
        node("Shape", "x", "sizes"), node("Reshape", "n sizes", "i"), node("Mul", "i w", "y"),
    ]  # fmt: skip
    constants = {"rows": np.array([0, count, -1]), "s": randn(1, count), "b": randn(2, count)}
    return nodes, {**constants, "w": randn(3, 6, 1, 1)}


@pytest.mark.parametrize("count", [1, 3, 6])
def test_norms_of_groups_of_channels(count):
    nodes, constants = in_groups(count)
    check(nodes, {"x": (2, 6, LONG, 5)}, constants=constants)
    proto = model(nodes, {"x": (2, 6, "h", "w")}, constants=constants)
    made = opened(proto, {"x": (2, 6, LONG, LONG)})
    assert not {"NonZero", "Repacked"} & {one.op_type for one in made.nodes}


@pytest.mark.parametrize(("opset", "scales"), [(18, 3), (21, 6)])
def test_norms_of_groups_as_one_operator(opset, scales):
    constants = {"s": randn(1, scales), "b": randn(2, scales)}
    nodes = [node("GroupNormalization", "x s b", "y", num_groups=3)]
    check(nodes, {"x": (2, 6, LONG, 5)}, constants=constants, opset=opset)


def test_the_side_of_a_square_is_found_from_its_places():
    """As DPT makes an image of its tokens, whose sides are then one length."""
    nodes = [node("Reshape", "x flat", "places"), node("Shape", "places", "n", start=2, end=3),
             node("Cast", "n", "real", to=TensorProto.FLOAT), node("Pow", "real half", "root"),
             node("Cast", "root", "side", to=TensorProto.INT64),
             node("Concat", "sizes side side", "all", axis=0),
             node("Reshape", "places all", "y")]  # fmt: skip
    constants = {"flat": np.array([1, 3, -1]), "half": np.float32(0.5), "sizes": np.array([1, 3])}
    proto = model(nodes, {"x": (1, 3, "h", "w")}, constants=constants)
    side = Span(32, 96, 32)
    graph = opened(proto, {"x": (1, 3, side, side)})
    assert [one.places for one in graph.ranges] == [(("x", 2), ("x", 3))]
    assert [(one.output, one.axis) for one in graph.lengths] == [("y", 2), ("y", 3)]
