"""Scan and Loop of so many steps as are known compute what ONNX says, or are refused by name."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import assert_like_oracle, run
from helpers.graphs import either, model, node, ops, randn, typed
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.operators.repetition import MOST_NODES
from benchmarks.fuzz.conformance_cases import attempt

CASES = (
    "test_scan9_sum",
    "test_scan9_multi_state",
    "test_loop11",
    "test_range_float_type_positive_delta_expanded",
)


def body(nodes, takes, gives, constants=()):
    """The graph of a step, of vectors of four numbers; names in capitals are of other types."""
    kinds = {"NUMBER": (TensorProto.INT64, ()), "GOES": (TensorProto.BOOL, ())}
    infos = [
        [
            helper.make_tensor_value_info(n, *kinds.get(n.rstrip("_"), (TensorProto.FLOAT, (4,))))
            for n in names
        ]
        for names in (takes, gives)
    ]
    held = [numpy_helper.from_array(values, name) for name, values in constants]
    return helper.make_graph(nodes, "step", *infos, held)


def scanned(**directions):
    """h = tanh(h * w + x[t]), and all of it along the last axis of the output."""
    nodes = [
        node("Mul", "h w", "m"),
        node("Add", "m e", "a"),
        node("Tanh", "a", "n"),
        node("Exp", "n", "o"),
    ]
    step = body(nodes, ("h", "e"), ("n", "o"), [("w", randn(0, 4))])
    made = node(
        "Scan", "h0 x", "h1 y", num_scan_inputs=1, body=step, scan_output_axes=[1], **directions
    )
    return model([made], {"h0": (4,), "x": (5, 4)}, ("h1", "y"))


def looped(count, goes_on="Identity", read="GOES", **words):
    """s += x + number of the step, so many times. read: what says whether there is one more."""
    nodes = [
        node("Cast", "NUMBER", "n", to=TensorProto.FLOAT),
        node("Add", "s n", "t"),
        node("Add", "t x", "u"),
        node("Mul", "u u", "square"),
        node(goes_on, read, "GOES_", **words),
    ]
    step = body(nodes, ("NUMBER", "GOES", "s"), ("GOES_", "u", "square"))
    made = node("Loop", "count goes s0", "s1 y", body=step)
    constants = {"count": np.int64(count), "goes": np.bool_(True)}
    return model([made], {"s0": (4,), "x": (4,)}, ("s1", "y"), constants)


ENDS = {"begin": np.array(2), "n": np.array(5), "one": np.array(1)}


def counting():
    """x *= x while a counter is below n."""
    nodes = [
        node("Mul", "x_in x_in", "x_out"),
        node("Add", "i_in one", "i_out"),
        node("Less", "i_out n", "more_out"),
    ]
    kinds = {"x": (1, (4,)), "i": (7, ()), "more": (9, ()), "at": (7, ())}
    takes, gives = (("at", "more", "x", "i"), ("more", "x", "i"))
    infos = [
        [helper.make_tensor_value_info(f"{name}{end}", *kinds[name]) for name in names]
        for names, end in ((takes, "_in"), (gives, "_out"))
    ]
    return helper.make_graph(nodes, "step", *infos)


@pytest.mark.parametrize("name", CASES)
def test_a_node_test_of_onnx_is_right(name):
    assert attempt({"case": name}) == {"outcome": "right", "detail": ""}


@pytest.mark.parametrize("back", [0, 1])
def test_a_scan(back):
    assert_like_oracle(scanned(scan_input_directions=[back], scan_output_directions=[1 - back]))


def test_a_loop_that_reads_what_is_around_it():
    assert_like_oracle(looped(3))
    # As bags of embeddings are exported.
    assert_like_oracle(looped(3, "Cast", "goes", to=TensorProto.BOOL))


def test_a_loop_that_counts_itself():
    steps = [node("Loop", "- more x begin", "y last", body=counting())]
    found = canonicalize(
        model([node("Less", "begin n", "more"), *steps], {"x": (4,)}, constants=ENDS)
    )
    assert [one.op_type for one in found.graph.node] == ["Mul"] * 3
    assert ops(canonicalize(looped(3, "Not"))).count("Mul") == 1  # its first step is its last


def test_a_loop_that_takes_as_many_steps_as_another_made_rows():
    """As TensorFlow writes a layer that is applied to each frame: rows first, then over those."""
    rows = looped(3)
    rows.graph.node.extend([
        node("Shape", "y", "sizes", end=1),
        node("Squeeze", "sizes", "rows"),
        node("Less", "begin rows", "more"),
        node("Loop", "- more x begin", "z last", body=counting()),
    ])  # fmt: skip
    del rows.graph.output[:]
    rows.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, (4,)))
    rows.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in ENDS.items())
    assert ops(canonicalize(rows)) == ["Mul"] * 3


@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (lambda: looped(MOST_NODES), "are compiled at most"),
        (lambda: looped(3, "Cast", "s", to=TensorProto.BOOL), "or follow from a counter"),
        (lambda: looped(0), "it takes no step"),
    ],
)
def test_what_cannot_be_written_out_is_refused_by_name(proto, reason):
    with pytest.raises(ModelError, match=f"Loop: .*{reason}"):
        canonicalize(proto())


def test_bags_of_rows_of_a_table_that_offsets_begin():
    """As torch writes EmbeddingBag: each step of a loop sums up the rows that its bag names."""
    step = helper.make_graph(
        [
            node("Gather", "starts i", "start"),
            node("Gather", "ends i", "end"),
            node("Unsqueeze", "start zero", "a"),
            node("Unsqueeze", "end zero", "b"),
            node("Slice", "indices a b zero", "bag"),
            node("Gather", "table bag", "rows"),
            node("ReduceSum", "rows zero", "row", keepdims=0),
            node("Identity", "goes", "goes_on"),
        ],
        "step",
        [helper.make_tensor_value_info("i", 7, ()), helper.make_tensor_value_info("goes", 9, ())],
        [helper.make_tensor_value_info("goes_on", 9, ()),
         helper.make_tensor_value_info("row", 1, (8,))],
    )  # fmt: skip
    nodes = [
        node("Concat", "starts size", "all", axis=0),
        node("Slice", "all one four", "ends"),
        node("Loop", "three true", "y", body=step),
    ]
    constants = {"table": randn(0, 20, 8), "size": [9], "zero": [0], "one": [1], "four": [4]}
    constants |= {"three": np.array(3), "true": np.array(True)}
    given = {"indices": ("int64", (9,)), "starts": ("int64", (3,))}
    proto = typed(nodes, given, {"y": "float32"}, constants)
    feeds = {"indices": np.arange(9) * 2, "starts": np.array([0, 4, 4])}
    (want,), (made,) = graphs.run(proto, feeds), run(proto, feeds)
    np.testing.assert_allclose(made, want, rtol=1e-6)


def test_bags_that_a_loop_appends_to_a_sequence_while_there_are_more():
    """As torch's newer exporter writes EmbeddingBag: a bag may be empty, and its rows are cut."""
    row = [node("Slice", "rows start end", "own"), node("ReduceSum", "own zero", "r")]
    nodes = [
        node("Reshape", "i_in zero_less", "at_list"),
        node("Add", "at_list one", "behind"),
        node("Slice", "all at_list behind", "start"),
        node("Add", "behind one", "further"),
        node("Slice", "all behind further", "end"),
        node("Equal", "start end", "is_empty"),
        either("is_empty", "bag", [node("Identity", "none", "r")], row, None),
        node("SequenceInsert", "bags_in bag", "bags_out"),
        node("Add", "i_in one_more", "i_out"),
        node("Less", "i_out n", "more_out"),
    ]
    step = counting()
    del step.node[:]
    step.node.extend(nodes)
    sequence = helper.make_tensor_sequence_value_info
    step.input[2].CopyFrom(sequence("bags_in", 1, None))
    step.output[1].CopyFrom(sequence("bags_out", 1, None))
    nodes = [
        node("Gather", "table indices", "rows"),
        node("Concat", "starts size", "all", axis=0),
        helper.make_node("SequenceEmpty", [], ["bags"]),
        node("Loop", "- yes bags begin", "filled last", body=step),
        node("ConcatFromSequence", "filled", "y", axis=0),
    ]
    constants = {"table": randn(0, 20, 8), "size": [9], "zero": [0], "one": [1], "n": np.array(3),
                 "zero_less": [-1], "begin": np.array(0), "one_more": np.array(1),
                 "yes": np.array(True), "none": np.zeros((1, 8), np.float32)}  # fmt: skip
    given = {"indices": ("int64", (9,)), "starts": ("int64", (3,))}
    proto = typed(nodes, given, {"y": "float32"}, constants)
    feeds = {"indices": np.arange(9) * 2, "starts": np.array([0, 4, 4])}
    (want,), (made,) = graphs.run(proto, feeds), run(proto, feeds)
    np.testing.assert_allclose(made, want, rtol=1e-6)
