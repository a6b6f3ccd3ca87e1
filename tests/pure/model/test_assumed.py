"""Lengths that are assumed follow from what a graph does with them, where it says so."""

import numpy as np
import pytest
from helpers.graphs import model, node, randn, typed
from helpers.tried import assumed
from onnx import TensorProto

from ansor_deploy.model.batches import Span
from ansor_deploy.model.graph import fold
from ansor_deploy.model.misfit import Trials, misfit
from ansor_deploy.model.onnx.size_names import SizeName


def test_text_is_no_longer_than_the_positions_that_a_run_counts():
    """RoBERTa counts the tokens that are no padding, from two on."""
    constants = {
        "table": randn(0, 50, 8),
        "positions": randn(1, 66, 8),
        "pad": np.array(1),
        "at": np.array(1),
    }
    nodes = [
        node("Gather", "table ids", "e"),
        node("Equal", "ids pad", "none"),
        node("Not", "none", "some"),
    ]
    nodes += [node("Cast", "some", "bits", to=TensorProto.INT32), node("CumSum", "bits at", "sum")]
    nodes += [
        node("Mul", "sum bits", "counted"),
        node("Cast", "counted", "n", to=TensorProto.INT64),
    ]
    nodes += [node("Add", "n pad", "m"), node("Gather", "positions m", "p")]
    proto = model([*nodes, node("Add", "e p", "y")], {"ids": ("batch", "seq")}, constants=constants)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    assert assumed(proto, {}) == {"ids": (1, Span(1, 64))}
    assert "reads row 66 of 66" in misfit(proto, {"ids": (1, 65)})


def test_no_more_is_read_than_a_fused_node_has():
    assert "reads row 16 of 16" in misfit(embedded(), {"ids": (1, 17)})
    assert not misfit(embedded(), {"ids": (1, 16)})
    terms = {"b": randn(0, 8, 3), "s": np.float32(0.1), "z": np.uint8(3)}
    terms["b"] = terms["b"].astype(np.uint8)
    both = fused("QLinearAdd", "i s z b s z s z", "y")
    proto = model([node("QuantizeLinear", "x s z", "i"), both], {"x": ("n", 3)}, constants=terms)
    assert "takes 8x9 together" in misfit(proto, {"x": (9, 3)})
    assert not misfit(proto, {"x": (8, 3)})


@pytest.mark.parametrize("op", ["GatherND", "GatherElements", "GatherBlockQuantized"])
def test_no_more_is_read_than_other_tables_have(op):
    """Of positions, by torch's newer exporter; for many rows, as DeBERTa does; and in blocks."""
    nodes = [node("Shape", "x", "n", start=1, end=2), node("Squeeze", "n", "m"),
             node("Range", "none m one", "ids"), node("Unsqueeze", "ids at", "lines")]  # fmt: skip
    table = {"w": np.zeros((8, 16), np.uint8), "none": np.array(0), "one": np.array(1)}
    if op == "GatherND":
        table |= {"at": np.array([1])}
        nodes.append(node(op, "w lines", "y"))
    elif op == "GatherElements":
        table |= {"at": np.array([0]), "w": np.zeros((4096, 8)), "rows": np.array([4096, 1])}
        nodes += [node("Expand", "lines rows", "many"), node(op, "w many", "y", axis=1)]
    else:
        table |= {"k": np.ones((8, 1), np.float32)}
        nodes[-1] = fused(op, "w ids k", "y", quantize_axis=1, bits=8)
    proto = model(nodes, {"x": (1, "n")}, constants=table)
    assert "reads row 8 of 8" in misfit(proto, {"x": (1, 9)})


def test_no_more_is_read_than_a_table_has_that_microsoft_s_conversion_makes():
    table = {"q": np.zeros((8, 16), np.uint8), "s": np.float32(0.1), "z": np.uint8(3)}
    table |= {"none": np.array([0]), "axis": np.array([0])}
    nodes = [fused("DequantizeLinear", "q s z", "rows"), node("Shape", "x", "n", start=1, end=2),
             node("Slice", "rows none n axis", "own"), node("Add", "x own", "y")]  # fmt: skip
    proto = model(nodes, {"x": (1, "n", 16)}, constants=table)
    assert misfit(proto, {"x": (1, 9, 16)})
    assert not misfit(proto, {"x": (1, 8, 16)})


def test_axes_of_one_letter_are_of_one_size():
    nodes = [node("Einsum", "x w", "y", equation="...ij,jk->...ik")]
    proto = model(nodes, {"x": (2, 3, "n")}, constants={"w": randn(0, 4, 5)})
    assert "takes 4x7 together" in misfit(proto, {"x": (2, 3, 7)})
    assert not misfit(proto, {"x": (2, 3, 4)})
    assert not misfit(proto, {"x": (2, 3, 1)})


def embedded():
    tables = {"words": randn(0, 50, 8), "rows": randn(1, 16, 8), "g": randn(2, 8), "b": randn(3, 8)}
    nodes = [fused("EmbedLayerNormalization", "ids - words rows - g b", "y n")]
    return model(nodes, {"ids": (1, "n")}, constants=tables)


def fused(op, inputs, outputs, **attributes):
    made = node(op, inputs, outputs, **attributes)
    made.domain = "com.microsoft"
    return made


@pytest.mark.parametrize("least", [1, 16])
def test_text_is_no_longer_than_the_positions_that_a_mask_counts(least):
    """OPT counts the ones of its mask, and leaves out those of tokens before."""
    numbers = {"one": 1, "two": 2, "from": [0], "to": [2**63 - 1], "axes": [1]}
    constants = {"positions": randn(1, 66, 8)}
    constants |= {name: np.array(value, np.int64) for name, value in numbers.items()}
    nodes = [node("CumSum", "mask one", "sum"), node("Mul", "sum mask", "counted")]
    nodes += [node("Sub", "counted one", "n"), node("Slice", "n from to axes", "new")]
    nodes += [node("Add", "new two", "m"), node("Gather", "positions m", "p")]
    nodes += [node("Gather", "p last", "l", axis=1), node("Add", "p l", "y")]
    constants["last"] = np.array([least - 1])
    proto = model(nodes, {"mask": ("batch", "seq")}, constants=constants)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    assert assumed(proto, {}) == {"mask": (1, Span(least, 64))}


def test_a_length_too_short_for_a_window_ends_no_process_in_the_slice_behind_it():
    """ONNX's inference takes a size below zero, and fails an assertion where it is cut."""
    constants = {"w": randn(0, 4, 1, 16)}
    constants |= {"from": np.array([0]), "to": np.array([5]), "axes": np.array([2])}
    nodes = [node("Conv", "x w", "c", strides=[4]), node("Slice", "c from to axes", "y")]
    proto = model(nodes, {"x": (1, 1, "n")}, constants=constants)
    assert misfit(proto, {"x": (1, 1, 1)}) == "node 'c' (Conv) takes 16 at once, and gets 1"
    assert assumed(proto, {}) == {"x": (1, 1, Span(16, 48000))}


@pytest.mark.parametrize("last", [2, -1])
def test_a_length_is_that_which_a_graph_was_exported_with_where_a_reshape_holds_it(last):
    """PyTorch's nn.TransformerEncoder writes its length so, whatever axes are named dynamic."""
    constants = {"sizes": np.array([10, 4, last]), "back": np.array([1, -1, 8])}
    nodes = [
        node("Reshape", "x sizes", "r"),
        node("Relu", "r", "z"),
        node("Reshape", "z back", "y"),
    ]
    proto = model(nodes, {"x": ("batch", "seq", 8)}, constants=constants)
    assert assumed(proto, {}) == {"x": (1, 10, 8)}


def test_a_length_is_that_which_a_graph_was_exported_with_where_a_sum_holds_it():
    """As of states of which a loop in Python was unrolled."""
    constants = {"states": randn(0, 12, 8), "last": np.array(11)}
    nodes = [node("Add", "x states", "s"), node("Gather", "x last", "l", axis=1)]
    nodes += [node("Add", "s l", "y")]
    proto = model(nodes, {"x": ("batch", "seq", 8)}, constants=constants)
    assert assumed(proto, {}) == {"x": (1, 12, 8)}


def test_images_are_those_that_a_graph_was_exported_with_where_it_holds_their_places():
    """A sum with 6x6 places of 8x8 pixels each: it does not say that the side was 48."""
    nodes = [
        node("Conv", "x w", "c", strides=[8, 8]),
        node("Reshape", "c rows", "r"),
        node("Add", "r held", "y"),
    ]
    constants = {"w": randn(0, 4, 3, 8, 8), "rows": np.array([1, 4, -1]), "held": randn(1, 4, 36)}
    proto = model(nodes, {"x": ("n", 3, "h", "w")}, constants=constants)
    assert assumed(proto, {}) == {"x": (1, 3, 48, 48)}
    colours = model(nodes, {"x": ("n", "c", "h", "w")}, constants=constants)
    assert assumed(colours, {}) == {"x": (1, 3, 48, 48)}
    beside = {
        "x": ("n", 3, "h", "w"),
        "text": ("n", "s", 4),
    }  # whose length the graph does not hold
    found = assumed(model([*nodes, node("Relu", "text", "z")], beside, constants=constants), {})
    assert found == {"x": (1, 3, 48, 48), "text": (1, Span(1, 128), 4)}


def test_a_batch_is_that_which_a_graph_was_exported_with_where_a_reshape_holds_it():
    """As the exporter of torch writes the heads of an attention of few rows."""
    nodes = [node("MatMul", "x w", "m"), node("Reshape", "m heads", "y")]
    constants = {"w": randn(0, 5, 16), "heads": np.array([3, 2, 8])}
    proto = model(nodes, {"x": ("batch", 5)}, constants=constants)
    assert assumed(proto, {}) == {"x": (3, 5)}


def test_images_have_the_channels_that_their_convolution_takes():
    """A decoder of latents, of which diffusers leaves all axes open; and names such as 8H."""
    nodes = [node("Mul", "x s", "z"), node("Conv", "z w", "y", strides=[2, 2])]
    constants = {"w": randn(0, 4, 7, 2, 2), "s": np.float32(2)}
    any_size = Span(32, 64, 32)
    proto = model(nodes, {"x": ("batch", "channels", "h", "w")}, constants=constants)
    assert assumed(proto, {}) == {"x": (1, 7, any_size, any_size)}
    assert SizeName("8H", ()).value({"H": 3}) == 24


def test_images_have_any_size_in_the_steps_of_windows():
    """Windows of 4 x 4 places of 32 pixels, as Swin exports them: 64 is no multiple of that."""
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[32, 32], strides=[32, 32]),
        node("Shape", "c", "places", start=2),
        node("Div", "places four", "several"),
        node("Mul", "several four", "size"),
        node("Concat", "first size", "shape", axis=0),
        node("Reshape", "c shape", "y"),
    ]
    constants = {"w": randn(0, 2, 3, 32, 32), "four": np.array(4), "first": np.array([1, 2])}
    proto = model(nodes, {"x": ("n", 3, "h", "w")}, constants=constants)
    any_size = Span(128, 256, 128)
    assert assumed(proto, {}) == {"x": (1, 3, any_size, any_size)}


def test_images_have_any_size_in_the_steps_of_their_patches():
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[14, 14], strides=[14, 14]),
        node("Shape", "c", "places", start=2),
        node("Concat", "first places", "size", axis=0),
        node("Resize", "pos - - size", "p", mode="cubic"),
        node("Add", "c p", "y"),
    ]
    constants = {"w": randn(0, 2, 3, 14, 14), "pos": randn(1, 1, 2, 5, 5)}
    constants["first"] = np.array([1, 2])
    proto = model(nodes, {"x": ("n", 3, "h", "w")}, constants=constants)
    any_size = Span(28, 70, 14)
    assert assumed(proto, {}) == {"x": (1, 3, any_size, any_size)}


def test_lengths_beyond_what_is_proposed_make_no_tensor_huge_together():
    """As a decoder of masks, in which the points of each object attend to a large image."""
    nodes = [node("MatMul", "x w", "m"), node("Relu", "m", "y")]
    proto = model(nodes, {"x": (1, "o", "n", 2)}, constants={"w": randn(0, 2, 1 << 16)})
    (_, objects, points, _) = assumed(proto, {})["x"]
    assert objects.most * points.most << 16 <= 1 << 26


def test_two_images_have_one_size():
    """As what finds the motion between two images takes them."""
    images = {"a": (1, 3, "h", "w"), "b": (1, 3, "h", "w")}
    any_size = Span(96, 224, 32)
    both = dict.fromkeys(images, (1, 3, any_size, any_size))
    assert assumed(model([node("Sub", "a b", "y")], images), {}) == both


def test_a_mask_of_an_image_is_as_large_as_the_image():
    """Although nothing but the name of its axes says so."""
    inputs = {"x": ("b", 3, "h", "w"), "mask": ("b", "h", "w")}
    nodes = [node("ReduceSum", "mask", "some", keepdims=0), node("Add", "x some", "y")]
    side = Span(96, 224, 32)
    want = {"x": (1, 3, side, side), "mask": (1, side, side)}
    assert assumed(model(nodes, inputs), {}) == want


def test_two_images_in_one_input_have_their_colours_behind_their_number():
    """As what finds the places that two images share takes them."""
    proto = model([node("Relu", "x", "y")], {"x": ("b", 2, 3, "h", "w")})
    assert assumed(proto, {}) == {"x": (1, 2, 3, Span(96, 224, 32), Span(96, 224, 32))}


def test_the_number_of_queries_says_nothing_of_an_image():
    """A detector has a table of 100 queries, and windows that overlap."""
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[7, 7], strides=[2, 2], pads=[3, 3, 3, 3]),
        node("ReduceMean", "c", "m", axes=[2, 3], keepdims=0),
        node("Add", "m query_pos", "y"),
    ]
    constants = {"w": randn(0, 2, 3, 7, 7), "query_pos": randn(1, 100, 2)}
    proto = model(nodes, {"x": ("n", 3, "h", "w")}, constants=constants, opset=17)
    any_size = Span(96, 224, 32)
    assert assumed(proto, {}) == {"x": (1, 3, any_size, any_size)}


def test_points_for_several_objects_are_no_image():
    """As a decoder of masks takes them: objects, points of each, and two coordinates."""
    proto = model(
        [node("MatMul", "x w", "y")], {"x": (1, "o", "n", 2)}, constants={"w": randn(0, 2, 8)}
    )
    assert assumed(proto, {}) == {"x": (1, Span(1, 128), Span(1, 128), 2)}


def test_sides_of_images_come_before_colours_too():
    proto = model([node("Relu", "x", "y")], {"x": ("?", "?", "?", 3)})
    any_size = Span(96, 224, 32)
    assert assumed(proto, {}) == {"x": (1, any_size, any_size, 3)}


def test_a_text_may_be_shorter_than_usual_beside_images_that_are_not():
    """As in CLIP, of which each tower has a table of positions."""
    constants = {"w": randn(0, 4, 3, 16, 16), "rows": np.array([1, 16, 4]), "pos": randn(1, 16, 4)}
    constants |= {"table": randn(2, 50, 4), "text_pos": randn(3, 7, 4), "zero": np.array(0)}
    nodes = [node("Conv", "x w", "c", strides=[16, 16]), node("Reshape", "c rows", "r")]
    nodes += [node("Add", "r pos", "image"), node("Cast", "ids", "i", to=TensorProto.INT64)]
    nodes += [node("Gather", "table i", "e"), node("Shape", "i", "n", start=1, end=2)]
    nodes += [node("Squeeze", "n", "m"), node("Range", "zero m one", "at")]
    nodes += [node("Gather", "text_pos at", "p"), node("Add", "e p", "text")]
    inputs = {"x": ("b", "channels", "h", "w"), "ids": ("b", "sequence")}
    proto = model(nodes, inputs, ("image", "text"), {**constants, "one": np.array(1)})
    assert assumed(proto, {}) == {"x": (1, 3, 64, 64), "ids": (1, Span(1, 7))}


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        (("n",), (Span(1, 128),)),
        (("T", "B", 8), (Span(1, 128), 1, 8)),
        (("H", "W", 3), (Span(96, 224, 32), Span(96, 224, 32), 3)),
        ((3, "height", "width"), (3, Span(96, 224, 32), Span(96, 224, 32))),
        ((2, "?", 16), (2, 1, 16)),  # a state of a recurrent layer
    ],
)
def test_what_an_axis_is_of_is_known_by_its_letter_and_by_the_axes_beside_it(shape, found):
    assert assumed(model([node("Relu", "x", "y")], {"x": shape}), {}) == {"x": found}


def test_all_that_an_input_has_is_of_the_batch_that_is_beside_it_where_the_graph_takes_that():
    inputs = {"x": ("DynamicDimension.0", 8), "length": ("DynamicDimension.1",)}
    proto = model([node("Mul", "x length", "y")], inputs)
    assert assumed(proto, {}) == {"x": (1, 8), "length": (1,)}


def test_a_line_of_text_is_as_high_as_the_graph_takes_and_of_any_length():
    """Its exporter left both sides open, and a sum holds what the height comes to."""
    constants = {"w": randn(0, 8, 3, 16, 1), "v": randn(1, 8, 3, 1)}
    nodes = [node("Conv", "x w", "c", strides=[16, 1]), node("Add", "c v", "y")]
    proto = model(nodes, {"x": ("batch", 3, "?", "?")}, constants=constants)
    assert assumed(proto, {}) == {"x": (1, 3, 48, Span(1, 960))}


def test_a_length_is_that_which_a_graph_was_exported_with_where_a_product_holds_it():
    """A layer over tokens has a weight for each."""
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "t w", "y")]
    proto = model(nodes, {"x": ("batch", "seq", 8)}, constants={"w": randn(0, 10, 6)})
    assert assumed(proto, {}) == {"x": (1, 10, 8)}


def test_what_no_shape_changes_is_folded_once(monkeypatch):
    folded = []
    evaluate = fold._results
    monkeypatch.setattr(fold, "_results", lambda *given: folded.append(given) or evaluate(*given))
    nodes = [node("Add", "one one", "two"), node("Mul", "x two", "y")]
    inputs = {"x": (TensorProto.FLOAT, [1, "n"])}
    proto = typed(nodes, inputs, {"y": TensorProto.FLOAT}, {"one": np.ones(1, np.float32)})
    trials = Trials(proto)
    assert [trials.misfit({"x": (1, size)}) for size in (1, 2, 2)] == ["", "", ""]
    assert len(folded) == 1


def test_tables_that_say_nothing_of_shapes_are_not_computed(monkeypatch):
    made, evaluate = [], fold._evaluate
    monkeypatch.setattr(fold, "_evaluate", lambda *given: made.append(given[1]) or evaluate(*given))
    nodes = [node("Shape", "x", "n", start=1), node("Squeeze", "n", "count"),
             node("Range", "zero count one", "r"), node("Unsqueeze", "r last", "column"),
             node("Sub", "column r", "apart"), node("Cast", "apart", "f", to=TensorProto.FLOAT),
             node("Mul", "x f", "y")]  # fmt: skip
    constants = {"zero": np.array(0), "one": np.array(1), "last": np.array([1])}
    trials = Trials(model(nodes, {"x": (1, "n")}, constants=constants))
    for size, computed in ((600, []), (9, ["apart"])):
        made.clear()
        assert trials.tried({"x": (1, size)}) == ("", size * size)
        assert [one.output[0] for one in made if one.op_type == "Sub"] == computed


@pytest.mark.parametrize(
    ("size", "chained", "fits"),
    [(1000, False, True), (1400, False, False), (2000, False, False), (1400, True, True)],
)
def test_tables_that_exceed_the_room_together_do_not_fit(size, chained, fits):
    """Of 1400 x 1400 each is computed, of 2000 x 2000 none; in a chain one is needed at a time."""
    nodes = [node("Shape", "x", "n", start=1), node("Concat", "n n", "s", axis=0)]
    if chained:
        nodes += [
            node("Expand", "c0 s", "t0"),
            *(node("Neg", f"t{i}", f"t{i + 1}") for i in range(20)),
        ]
        nodes.append(node("Add", "x t20", "y"))
    else:
        nodes += [node("Expand", f"c{i} s", f"t{i}") for i in range(20)]
        nodes.append(node("Sum", " ".join(["x", *(f"t{i}" for i in range(20))]), "y"))
    constants = {f"c{i}": np.array(i, np.float32) for i in range(20)}
    fault = misfit(model(nodes, {"x": (1, "n")}, constants=constants), {"x": (1, size)})
    assert ("more than 128 MiB" not in fault) == fits


def test_channels_of_sound_are_those_that_a_convolution_reads():
    constants = {"one": np.ones(1, np.float32), "w": randn(0, 4, 1, 9)}
    nodes = [node("InstanceNormalization", "x one one", "n"), node("Conv", "n w", "y", strides=[4])]
    found = assumed(model(nodes, {"x": ("N", "C", "T")}, constants=constants), {})
    assert found == {"x": (1, 1, Span(16, 48000, 1))}


def test_the_batch_of_a_state_is_no_exported_length():
    nodes = [node("Reshape", "x five", "steps"), node("Mul", "state steps", "y")]
    inputs = {"x": ("a", "n", 4), "state": (2, "m", 4)}
    proto = model(nodes, inputs, constants={"five": np.array([1, 5, 4])})
    assert assumed(proto, {}) == {"x": (1, 5, 4), "state": (2, 1, 4)}


def test_rows_without_a_name_are_a_batch_beside_inputs_of_fixed_sizes():
    """As tf2onnx names the batch of each input, and Keras makes inputs of what it normalises by."""
    nodes = [node("Sub", "x means", "d"), node("Div", "d spreads", "n"), node("Add", "n z", "y")]
    fixed = {"means": (1, 4), "spreads": (1, 4)}
    proto = model(nodes, {"x": ("unk__7", 4), "z": ("unk__8", 1), **fixed})
    assert assumed(proto, {}) == {"x": (1, 4), "z": (1, 1)}


def test_a_sequence_of_states_is_no_batch():
    inputs = {"encoder_hidden_states": (1, "encoder_sequence", 4)}
    proto = model([node("Relu", "encoder_hidden_states", "y")], inputs)
    assert assumed(proto, {}) == {"encoder_hidden_states": (1, Span(1, 128), 4)}
