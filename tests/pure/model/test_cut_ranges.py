"""Rows of any length that are cut, and numbers of as many as there are."""

import numpy as np
import pytest
from helpers.graphs import either, model, node, randn
from helpers.ranges import LONG, MOST, check, opened
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.model.canonicalize import canonical_graph

ROWS = {"x": (1, LONG, 4)}


@pytest.mark.parametrize("first", [0, 1])
def test_every_other_row(first):
    constants = {"b": np.array([first]), "e": np.array([MOST]), "a": np.array([1]),
                 "s": np.array([2])}  # fmt: skip
    check([node("Slice", "x b e a s", "y")], ROWS, (12, 7, 1), constants)


def test_rows_backwards():
    """As wav2vec2 counts from the end which of its frames are padding."""
    constants = {"b": np.array([-1]), "e": np.array([-(2**63)]), "a": np.array([1]),
                 "axis": np.array(1)}  # fmt: skip
    nodes = [node("Slice", "x b e a b", "t"), node("CumSum", "t axis", "s"),
             node("Slice", "s b e a b", "y")]  # fmt: skip
    check(nodes, ROWS, (12, 7, 1), constants)


def test_the_last_row_is_read_by_a_negative_place():
    """As wav2vec2 marks the last frame of a sound that is padding alone."""
    nodes = [
        node("GatherND", "x places", "last"),
        node("Mul", "x last", "y"),
    ]
    check(nodes, ROWS, (12, 7, 1), {"places": np.array([[0, -1]])})


def test_what_replaces_the_only_row_is_the_result():
    """As torch writes the results of one image of a batch, by `select_scatter`."""
    nodes = [
        node("Exp", "x", "new"),
        node("Shape", "new", "size"),
        node("Expand", "zero size", "old"),
        node("Expand", "first size", "places"),
        node("ScatterElements", "old places new", "y", axis=0),
    ]
    constants = {"zero": np.float32(0), "first": np.array(0)}
    check(nodes, ROWS, (12, 7, 1), constants)
    graph = opened(model(nodes, {"x": (1, "n", 4)}, constants=constants), ROWS)
    assert "ScatterElements" not in {one.op_type for one in graph.nodes}


def test_a_table_with_as_much_around_it_as_rows_are_long():
    """As VITS lays zeros before and behind what it knows of near positions."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Concat", "none n none none one none", "pads", axis=0),
        node("Pad", "table pads value", "y"),
    ]
    constants = {"none": np.array([0]), "one": np.array([1]), "value": np.float32(7),
                 "table": randn(1, 1, 3, 5)}  # fmt: skip
    check(nodes, ROWS, (12, 7, 1), constants)


def test_rows_to_whole_fives_as_floats_count_them():
    """As Encodec makes its signal as long as whole steps of a convolution."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Cast", "n", "real", to=TensorProto.FLOAT),
        node("Div", "real five", "fifths"),
        node("Add", "fifths one", "more"),
        node("Ceil", "more", "steps"),
        node("Cast", "steps", "whole", to=TensorProto.INT64),
        node("Mul", "whole of_five", "wide"),
        node("Sub", "wide n", "rest"),
        node("Concat", "none none none none rest none", "pads", axis=0),
        node("Pad", "x pads", "y"),
    ]
    constants = {"five": np.float32(5), "one": np.float32(1), "of_five": np.array([5]),
                 "none": np.array([0])}  # fmt: skip
    check(nodes, ROWS, (12, 10, 7, 1), constants)
    graph = opened(model(nodes, {"x": (1, "n", 4)}, constants=constants), ROWS)
    assert "Ceil" not in {one.op_type for one in graph.nodes}  # they are counted as integers


def test_rows_as_opset_9_cuts_them():
    nodes = [
        node("Slice", "x", "c", starts=[1], ends=[MOST], axes=[1]),
        node("Shape", "c", "n"),
        node("Slice", "n", "k", starts=[1], ends=[2]),
        node("Concat", "k four", "s", axis=0),
        node("Reshape", "c s", "y"),
    ]
    check(nodes, ROWS, (12, 7, 3), {"four": np.array([4])}, opset=9)


@pytest.mark.parametrize("behind", [False, True])
def test_rows_from_one_on_that_data_choose(behind):
    """What a run reads may count from the end, and begin beyond it."""
    nodes = [
        node("ArgMax", "x", "i", axis=1, keepdims=0),
        node("Reshape", "i four", "j"),
        node("Slice", "j zero one", "first"),
        node("Sub", "first long", "from_end"),
        node("Slice", f"x {'from_end' if behind else 'first'} end one", "c"),
        node("ReduceSum", "c one", "y", keepdims=0),
    ]
    constants = {"four": [4], "zero": [0], "one": [1], "long": [3], "end": [MOST]}
    check(nodes, ROWS, (12, 7, 1), {name: np.array(of) for name, of in constants.items()})


def test_the_last_rows_are_split_off_by_how_many_there_are():
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Sub", "n five", "rest"),
        node("Concat", "five rest", "s", axis=0),
        node("Split", "x s", "a b", axis=1),
        node("ReduceSum", "b one", "c"),
        node("Add", "a c", "y"),
    ]
    check(nodes, ROWS, (12, 7, 5), {"five": np.array([5]), "one": np.array([1])})


def test_rows_in_equal_parts():
    nodes = [
        node("Split", "x", "a b c", axis=1, num_outputs=3),
        node("ReduceSum", "c one", "d"),
        node("Sub", "a d", "y"),
    ]
    check(nodes, ROWS, (12, 7, 5), {"one": np.array([1])}, opset=18)


def test_steps_of_a_loop_over_rows_are_written_out():
    step = helper.make_graph(
        [
            node("Unsqueeze", "i zero", "first"),
            node("Add", "first two", "end"),
            node("Slice", "x first end one", "c"),
            node("ReduceSum", "c one", "row", keepdims=0),
            node("Identity", "goes", "goes_on"),
        ],
        "step",
        [helper.make_tensor_value_info("i", 7, ()), helper.make_tensor_value_info("goes", 9, ())],
        [helper.make_tensor_value_info("goes_on", 9, ()),
         helper.make_tensor_value_info("row", 1, (1, 4))],
    )  # fmt: skip
    constants = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]),
                 "count": np.array(3), "true": np.array(True)}  # fmt: skip
    check([node("Loop", "count true", "y", body=step)], ROWS, (12, 7, 1), constants)


@pytest.mark.parametrize("loop", ["n true", "- true", "n -"])
def test_a_loop_takes_a_step_for_each_row(loop):
    """Until there are as many steps as rows, or the body's own counter reaches their number."""
    values = {"i": (7, ()), "goes": (9, ()), "at": (7, ()), "h": (1, (1, 4)), "goes_on": (9, ()),
              "next": (7, ()), "g": (1, (1, 4)), "row": (1, (1, 4))}  # fmt: skip
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in values.items()]
    body = [
        node("Gather", "x at", "r", axis=1), node("Add", "r h", "s"), node("Tanh", "s", "g"),
        node("Add", "at step", "next"), node("Less", "next n", "goes_on"),
        node("Mul", "g r", "row"),
    ]  # fmt: skip
    nodes = [
        node("Shape", "x", "shape", start=1, end=2), node("Squeeze", "shape", "n"),
        node("Loop", f"{loop} none begin", "k last all", body=helper.make_graph(
            body, "step", infos[:4], infos[4:])),
        node("Add", "all last", "y"),
    ]  # fmt: skip
    constants = {"true": np.array(True), "none": np.array(0), "begin": randn(1, 1, 4),
                 "step": np.array(1)}  # fmt: skip
    check(nodes, ROWS, (12, 7, 1), constants)


@pytest.mark.parametrize("joined", [{"new_axis": 1}, {}])
def test_rows_that_a_loop_appends_to_a_sequence_are_stacked(joined):
    """As torch writes a scripted loop that ends with `stack` or `cat`."""
    sequence = helper.make_tensor_sequence_value_info
    values = {"i": (7, ()), "goes": (9, ()), "h": (1, (1, 4)), "still": (9, ()), "g": (1, (1, 4))}
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in values.items()]
    body = [
        node("Gather", "x i", "r", axis=1), node("Add", "r h", "s"), node("Tanh", "s", "g"),
        node("SequenceInsert", "some g", "more"), node("Identity", "goes", "still"),
    ]  # fmt: skip
    step = helper.make_graph(
        body, "step", [*infos[:3], sequence("some", 1, None)],
        [*infos[3:], sequence("more", 1, None)])  # fmt: skip
    nodes = [
        node("Shape", "x", "shape", start=1, end=2), node("Squeeze", "shape", "n"),
        helper.make_node("SequenceEmpty", [], ["none"]),
        node("Loop", "n true begin none", "last all", body=step),
        node("ConcatFromSequence", "all", "rows", axis=0, **joined),
        node("Add", "rows last", "y"),
    ]  # fmt: skip
    constants = {"true": np.array(True), "begin": randn(1, 1, 4)}
    check(nodes, ROWS, (12, 7, 1), constants)
    graph = canonical_graph(model(nodes, {"x": (1, 3, 4)}, constants=constants, opset=18))
    assert not [one for one in graph.nodes if "Sequence" in one.op_type]


@pytest.mark.parametrize("by", [-1, -3])
def test_numbers_that_go_down(by):
    """As positions beside one's own are counted: from the last before it to the last behind it."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Squeeze", "n", "k"),
        node("Sub", "k one", "first"),
        node("Neg", "k", "end"),
        node("Range", "first end by", "r"),
        node("Cast", "r", "f", to=1),
        node("Unsqueeze", "f zero", "u"),
        node("MatMul", "w u", "v"),
        node("MatMul", "x v", "y"),
    ]
    constants = {"one": np.array(1), "by": np.array(by), "zero": np.array([0]), "w": randn(1, 4, 1)}
    check(nodes, ROWS, (12, 7, 1), constants)


def test_a_table_is_resized_unless_it_is_as_long_as_rows():
    """As ViTDet resizes what it knows of near positions, inside an If."""
    kept = [node("Identity", "table", "whole")]
    resized = [
        node("Concat", "one four count", "sizes", axis=0),
        node("Resize", "table - - sizes", "fit", mode="linear"),
    ]
    nodes = [
        node("Shape", "x", "count", start=1, end=2),
        node("Equal", "count seven", "alike"),
        either("alike", "found", kept, resized),
        node("Transpose", "found", "rows", perm=[0, 2, 1]),
        node("Add", "x rows", "y"),
    ]
    constants = {"table": randn(0, 1, 4, 7), "seven": np.array([7]), "one": np.array([1]),
                 "four": np.array([4])}  # fmt: skip
    check(nodes, ROWS, (12, 7, 1), constants)


def test_copies_of_rows_become_an_axis():
    """As ProphetNet repeats the buckets of its positions for each head."""
    nodes = [node("Tile", "x times", "t"), node("Shape", "x", "n", start=1, end=2),
             node("Concat", "one three n eight", "sizes", axis=0), node("Reshape", "t sizes", "r"),
             node("Transpose", "r", "y", perm=[0, 2, 1, 3])]  # fmt: skip
    numbers = {"times": [1, 3, 2], "one": [1], "three": [3], "eight": [8]}
    constants = {name: np.array(value) for name, value in numbers.items()}
    check(nodes, ROWS, (12, 7, 1), constants)


def test_places_of_ones_are_all_places():
    """As torch writes the indices of a slice that an assignment leaves whole."""
    one = numpy_helper.from_array(np.array([1]))
    nodes = [node("Shape", "x", "n", start=1, end=2),
             node("ConstantOfShape", "n", "ones", value=one),
             node("NonZero", "ones", "at"), node("Cast", "at", "f", to=TensorProto.FLOAT),
             node("Reshape", "f sizes", "r"), node("ConstantOfShape", "four", "few", value=one),
             node("NonZero", "few", "of"), node("Cast", "of", "g", to=TensorProto.FLOAT),
             node("Add", "x r", "s"), node("Add", "s g", "y")]  # fmt: skip
    check(nodes, ROWS, (12, 7, 1), {"sizes": np.array([1, -1, 1]), "four": np.array([4])})
