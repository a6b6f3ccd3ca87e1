"""Shapes proposed for what a model leaves open: what is pasted from a hint fits."""

import re
import time

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node, randn
from helpers.learned import learned
from helpers.tried import assumed, bound
from onnx import TensorProto

from ansor_deploy.errors import ModelError
from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.misfit import check_sizes, misfit
from ansor_deploy.model.onnx.size_names import SizeName
from ansor_deploy.model.shapes import explained

INTEGERS = TensorProto.INT64


def hint(proto, given=None):
    with pytest.raises(ModelError, match="unknown dimensions") as caught:
        bound(proto, given or {})
    return caught.value.hint


def proposed(proto, given=None):
    """The shapes of the hint, which were found to fit."""
    text = hint(proto, given)
    assert text.startswith("Give them: ")
    found = dict(re.findall(r"--input-shape (\S+)=(\S+)", text))
    shapes = {name: tuple(map(int, sizes.split(","))) for name, sizes in found.items()}
    canonical_graph(bound(proto, {**(given or {}), **shapes}))
    return shapes


def images(*nodes, sizes=("batch", 3, "height", "width"), **constants):
    """A network of images whose first node shrinks them to halves."""
    weights = {"w": randn(0, 4, 3, 2, 2)}
    first = node("Conv", "x w", "c", strides=[2, 2])
    return model([first, *nodes], {"x": sizes}, constants={**weights, **constants})


def told(proto, **entries):
    for key, value in entries.items():
        proto.metadata_props.add(key=key, value=value)
    return proto


def embedding(ids="ids", made="e"):
    return node("Gather", f"table {ids}", made)


TABLE = {"table": randn(0, 50, 8)}


def test_images_are_as_large_as_the_metadata_says():
    proto = told(images(node("Relu", "c", "y")), imgsz="[96, 160]", stride="32")
    assert proposed(proto) == {"x": (1, 3, 96, 160)}


def test_metadata_that_says_nothing_is_passed_over():
    for text in ("", "large", "[0, -1]", "{}", '["a"]', "1e9", "[" * 100_000):
        proto = told(images(node("Relu", "c", "y")), imgsz=text)
        assert proposed(proto) == {"x": (1, 3, 224, 224)}


def test_images_are_larger_where_features_are_scaled_up_again():
    proto = images(node("Resize", "c - s", "y"), s=np.array([1, 1, 2, 2], np.float32))
    assert proposed(proto) == {"x": (1, 3, 640, 640)}


def test_images_have_as_many_patches_as_there_are_positions():
    constants = {"w": randn(0, 8, 3, 14, 14), "shape": np.array([0, 8, -1])}
    nodes = [node("Conv", "x w", "c", strides=[14, 14]), node("Reshape", "c shape", "r")]
    nodes += [node("Transpose", "r", "t", perm=[0, 2, 1]), node("Add", "t pos_embed", "y")]
    constants["pos_embed"] = randn(1, 1, 37 * 37, 8)
    proto = model(nodes, {"x": ("b", 3, "h", "w")}, constants=constants)
    assert proposed(proto) == {"x": (1, 3, 518, 518)}


@pytest.mark.parametrize("shape", [(1, 37 * 37, 8), (1, 8, 37, 37)])
def test_images_have_as_many_patches_as_a_table_that_is_resized(shape):
    nodes = [node("Conv", "x w", "c", strides=[14, 14]), node("Shape", "c", "size")]
    nodes += [node("Resize", "map - - size", "r", mode="cubic"), node("Add", "c r", "y")]
    constants = {"w": randn(0, 8, 3, 14, 14), "onnx_1": randn(1, *shape)}
    if len(shape) == 3:
        constants["square"] = np.array([1, 37, 37, 8])
        rows = node("Reshape", "onnx_1 square", "rows")
        nodes[2:2] = [rows, node("Transpose", "rows", "map", perm=[0, 3, 1, 2])]
    else:
        nodes[2:2] = [node("Identity", "onnx_1", "map")]
    proto = model(nodes, {"x": ("b", 3, "h", "w")}, constants=constants)
    assert proposed(proto) == {"x": (1, 3, 518, 518)}


def test_the_last_axis_may_be_colours():
    proto = model([node("Relu", "x", "y")], {"x": ("n", "h", "w", 3)})
    assert proposed(proto) == {"x": (1, 224, 224, 3)}


def test_text_has_128_tokens_and_its_mask_as_many():
    nodes = [embedding(), node("Unsqueeze", "mask axes", "m"), node("Mul", "e m", "y")]
    inputs = {"ids": ("batch", "seq"), "mask": ("batch", "?")}
    proto = model(nodes, inputs, constants={**TABLE, "axes": np.array([2])})
    proto.graph.input[0].type.tensor_type.elem_type = INTEGERS
    assert proposed(proto) == {"ids": (1, 128), "mask": (1, 128)}


def test_text_is_no_longer_than_the_table_of_positions():
    constants = {**TABLE, "positions": randn(1, 77, 8), "zero": np.array(0), "one": np.array(1)}
    nodes = [embedding(), node("Shape", "ids", "s", start=1, end=2), node("Squeeze", "s", "n")]
    nodes += [node("Range", "zero n one", "r"), node("Gather", "positions r", "p")]
    nodes += [node("Add", "e p", "y")]
    proto = model(nodes, {"ids": ("batch", "seq")}, constants=constants)
    proto.graph.input[0].type.tensor_type.elem_type = INTEGERS
    assert proposed(proto) == {"ids": (1, 77)}


def test_text_is_as_long_as_a_table_of_positions_of_which_the_first_rows_are_for_nothing():
    constants = {**TABLE, "positions": randn(1, 79, 8), "two": np.array(2), "one": np.array(1)}
    nodes = [embedding(), node("Shape", "ids", "s", start=1, end=2), node("Squeeze", "s", "n")]
    nodes += [node("Add", "n two", "m"), node("Range", "two m one", "r")]
    nodes += [node("Gather", "positions r", "p"), node("Add", "e p", "y")]
    proto = model(nodes, {"ids": ("batch", "seq")}, constants=constants)
    proto.graph.input[0].type.tensor_type.elem_type = INTEGERS
    assert assumed(proto, {}) == {"ids": (1, Span(1, 77))}


def test_a_step_has_a_token_and_what_came_before():
    inputs = {
        "ids": ("batch", "new"),
        "mask": ("batch", "past + new"),
        "past.0.key": ("batch", 4, "past", 8),
    }
    nodes = [embedding(), node("Relu", "mask", "m"), node("Relu", "past.0.key", "k")]
    proto = model(nodes, inputs, outputs=["e", "m", "k"], constants=TABLE)
    proto.graph.input[0].type.tensor_type.elem_type = INTEGERS
    expected = {"ids": (1, 1), "mask": (1, 128), "past.0.key": (1, 4, 127, 8)}
    assert proposed(proto) == expected
    some = proposed(proto, {"past.0.key": (2, 4, 63, 8)})
    assert some == {"ids": (2, 1), "mask": (2, 64)}


def test_keys_of_an_encoder_are_as_long_as_what_it_has_read():
    inputs = {"encoder.h": ("b", "s1", 8), "past.0.encoder.key": ("b", 4, "s2", 8)}
    nodes = [node("Relu", "past.0.encoder.key", "k"), node("Add", "k encoder.h", "y")]
    expected = {"encoder.h": (1, 128, 8), "past.0.encoder.key": (1, 4, 128, 8)}
    assert proposed(model(nodes, inputs)) == expected
    few = [*nodes, node("Add", "past.1.key rows", "z")]
    inputs["past.1.key"] = ("b", 4, "p", 8)
    proto = model(few, inputs, ("y", "z"), constants={"rows": randn(0, 31, 1)})
    assert proposed(proto) == {**expected, "past.1.key": (1, 4, 31, 8)}


def test_sound_is_as_long_as_convolutions_need():
    constants = {"w": randn(0, 4, 1, 10), "axes": np.array([1])}
    nodes = [node("Unsqueeze", "x axes", "u"), node("Conv", "u w", "y", strides=[5])]
    proto = model(nodes, {"x": ("b", "n")}, constants=constants)
    assert proposed(proto) == {"x": (1, 16000)}
    assert misfit(proto, {"x": (1, 9)}) == "node 'y' (Conv) takes 10 at once, and gets 9"
    assert not misfit(proto, {"x": (1, 10)})
    stereo = model(nodes[1:], {"u": ("b", 2, "n")}, constants={"w": randn(0, 4, 2, 10)})
    assert proposed(stereo) == {"u": (1, 2, 16000)}


def test_sizes_that_nothing_fits_are_said_to_be_open():
    proto = model([node("Add", "a b", "y")], {"a": ("n", 3, "k"), "b": ("n", 4, "k")})
    tried = "--input-shape a=1,3,128 --input-shape b=1,4,128"
    assert f"It does not take {tried} (node 'y' (Add): Incompatible dimensions)" in hint(proto)


def test_a_graph_that_holds_the_sizes_it_was_exported_with_says_so():
    nodes = [node("Reshape", "x s", "y")]
    proto = model(nodes, {"x": ("batch", 4)}, constants={"s": np.array([2, 4], np.int64)})
    assert "node 'y' (Reshape) makes 2x4 of 1x4" in hint(proto)


def test_what_onnx_infers_nothing_of_contradicts_nothing():
    """As behind an imputer, in a model that reads a table column by column."""
    words = {"imputed_value_floats": [1.0, 2.0, 3.0]}
    proto = learned("Imputer", {"x": randn(0, 4, 3)}, **words)
    proto.graph.node[0].output[0] = "i"
    proto.graph.node.append(node("Concat", "i x", "y", axis=1))
    assert misfit(proto, {}) == ""


def test_every_input_that_is_open_is_in_the_hint():
    proto = model([node("Add", "a b", "y")], {"a": ("n", 3), "b": ("m", "k")})
    assert proposed(proto) == {"a": (1, 3), "b": (1, 1)}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("a", 3), ("a + 1", 4), ("2*a + b", 11), ("a - b", 1), ("b - 1", 4), ("total_a", 103),
        ("(a + b) * 2", 16),
    ],
)  # fmt: skip
def test_sums_of_names_are_computed(name, size):
    sizes = {"a": 3, "b": 5, "past_a": 100}
    assert SizeName(name, sizes).value(sizes) == size


@pytest.mark.parametrize("name", ["a b", "a.b", "f(a)", "a ** 2", "'a'", "1.5 * a", "a" * 9999])
def test_other_names_are_one(name):
    assert SizeName(name, ()).terms == {name}


def test_a_size_that_is_a_product_is_not_multiplied():
    proto = images(node("Relu", "c", "y"), sizes=("batch", 3, "32*h", "32*w"))
    assert proposed(proto) == {"x": (1, 3, 224, 224)}


def test_a_batch_may_be_a_range():
    said = "x=1,3,96,96 (for any batch up to 8: 1..8 in the place of its 1, and for images of any "
    said += "size: 32..96:32 in the place of 96)"
    assert hint(told(images(), imgsz="[96, 96]")).endswith(said)
    assert "batch" not in hint(told(images(sizes=("n", 3, "h", "w")), imgsz="[96, 96]"))


def test_proposals_take_no_time_of_large_weights():
    constants = {"w": np.zeros((40_000, 1000), np.float32)}
    proto = model([node("MatMul", "x w", "y")], {"x": ("n", 40_000)}, constants=constants)
    begin = time.monotonic()
    assert hint(proto) == "Give them: --input-shape x=1,40000"
    assert time.monotonic() - begin < 2


@pytest.fixture
def refused(tmp_path):
    """What a model says of shapes that it does not take: the message and the hint."""

    def refuse(proto, **shapes):
        path = tmp_path / "model.onnx"
        onnx.save(proto, path)
        with pytest.raises(ModelError) as caught, explained(path, [{}, shapes]):
            check_sizes(canonical_graph(bound(proto, shapes)))
        return caught.value.message, caught.value.hint

    return refuse


def pyramid():
    """Features at a quarter of the size are joined with those at half of it."""
    constants = {"v": randn(1, 4, 4, 2, 2), "s": np.array([1, 1, 2, 2], np.float32)}
    nodes = [node("Conv", "c v", "d", strides=[2, 2]), node("Resize", "d - s", "u")]
    nodes += [node("Concat", "u c", "j", axis=1), node("MaxPool", "j", "y", kernel_shape=[2, 2])]
    return images(*nodes, **constants)


def test_a_size_between_the_steps_of_a_network_is_told(refused):
    message, hint = refused(pyramid(), x=(2, 3, 330, 320))
    start = "the model does not take the shape of its input 'x' (2,3,330,320): node 'j' (Concat)"
    assert message.startswith(start)
    assert hint == "These fit: --input-shape x=2,3,320,320"
    _, hint = refused(pyramid(), x=(1, 3, 3, 3))
    assert hint == "These fit: --input-shape x=1,3,640,640"


def test_sound_that_is_too_short_is_told(refused):
    constants = {"w": randn(0, 4, 1, 10), "axes": np.array([1])}
    nodes = [node("Unsqueeze", "x axes", "u"), node("Conv", "u w", "y", strides=[5])]
    proto = model(nodes, {"x": ("b", "n")}, constants=constants)
    message, hint = refused(proto, x=(1, 9))
    assert message.endswith("input 'x' (1,9): node 'y' (Conv) takes 10 at once, and gets 9")
    assert hint == "These fit: --input-shape x=1,16000"


def test_an_input_that_does_not_go_with_the_others_is_told(refused):
    nodes = [node("Concat", "past x", "p", axis=1), node("Add", "p mask", "y")]
    inputs = {"x": ("b", 1, 4), "past": ("b", "past", 4), "mask": ("b", "past + 1", 1)}
    proto = model(nodes, inputs)
    message, hint = refused(proto, x=(1, 1, 4), past=(1, 7, 4), mask=(1, 7, 1))
    assert "input 'mask' (1,7,1): node 'y' (Add)" in message
    assert hint == "These fit: --input-shape mask=1,8,1"


def test_shapes_that_are_not_at_fault_are_not_blamed(refused):
    proto = model([node("Add", "a b", "y")], {"a": ("n", 3), "b": ("n", 4)})
    proto.graph.output[0].CopyFrom(proto.graph.input[0])
    proto.graph.output[0].name = "y"
    message, hint = refused(proto, a=(1, 3), b=(1, 4))
    assert message == (
        "shapes or types contradict each other: node 'y' (Add): Incompatible dimensions"
    )
    assert "again" in hint


@pytest.mark.parametrize("axis", [-3, 2, 9])
def test_an_axis_that_there_is_not_is_no_size(axis):
    rows = {"rows": np.array([5])}
    proto = model([node("Gather", "x rows", "y", axis=axis)], {"x": ("n", 3)}, constants=rows)
    assert "row 5" not in misfit(proto, {"x": (1, 3)})


def test_a_row_beyond_a_table_is_told(refused):
    nodes = [node("Gather", "x rows", "g", axis=1), node("Relu", "g", "y")]
    proto = model(nodes, {"x": ("b", "len")}, constants={"rows": np.array([2, 5])})
    message, hint = refused(proto, x=(1, 5))
    assert message.endswith("input 'x' (1,5): node 'g' (Gather) reads row 5 of 5")
    assert hint == "These fit: --input-shape x=1,128"


def test_a_size_that_the_file_fixes_may_change_by_whole_steps():
    proto = pyramid()
    for axis, size in enumerate((1, 3, 320, 320)):
        proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = size
    bound(proto, {"x": (1, 3, 448, 448)})
    with pytest.raises(ModelError, match=r"node j .* does not fit them: Can't merge") as caught:
        bound(proto, {"x": (1, 3, 450, 450)})
    assert caught.value.hint.endswith("dynamic. These fit: --input-shape x=1,3,448,448")


def test_what_a_shell_would_take_apart_is_quoted():
    proto = model([node("Relu", "x", "y")], {"x": ("n", 3)})
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "a (1)"
    assert hint(proto) == "Give them: --input-shape 'a (1)=1,3'"


def test_images_are_small_where_pixels_attend_to_all_pixels():
    nodes = [node("Reshape", "x s", "rows"), node("Transpose", "rows", "columns", perm=[0, 2, 1])]
    nodes += [node("MatMul", "columns rows", "scores"), node("Softmax", "scores", "y")]
    proto = model(nodes, {"x": (1, 3, "h", "w")}, constants={"s": np.array([1, 3, -1])})
    assert assumed(proto, {}) == {"x": (1, 3, 32, 32)}


def test_a_batch_and_one_length_are_assumed():
    nodes = [embedding(), node("Add", "e m", "y")]
    inputs = {"ids": ("batch", "seq"), "m": ("batch", "seq", 8)}
    proto = model(nodes, inputs, constants=TABLE)
    proto.graph.input[0].type.tensor_type.elem_type = INTEGERS
    assert assumed(proto, {}) == {"ids": (1, Span(1, 128)), "m": (1, Span(1, 128), 8)}
    assert assumed(proto, {"ids": (1, Span(2, 9))}) == {"m": (1, Span(2, 9), 8)}
    assert assumed(proto, {"ids": (1, 9)}) == {"m": (1, 9, 8)}
    alone = model([node("Relu", "x", "y")], {"x": ("batch", 4)})
    assert assumed(alone, {}) == {"x": (1, 4)}


def test_a_length_is_no_shorter_than_the_model_takes():
    nodes = [node("Conv", "x w", "c", strides=[4]), node("Relu", "c", "y")]
    proto = model(nodes, {"x": (1, 1, "n")}, constants={"w": randn(0, 4, 1, 10)})
    assert assumed(proto, {}) == {"x": (1, 1, Span(16, 48000))}


def test_a_length_is_no_shorter_than_what_is_mirrored():
    pads = np.array([0, 0, 6, 0, 0, 6], np.int64)
    nodes = [node("Pad", "x pads", "y", mode="reflect")]
    assert assumed(model(nodes, {"x": (1, 4, "n")}, constants={"pads": pads}), {}) == {
        "x": (1, 4, Span(8, 128))
    }


def test_a_line_of_text_has_any_width():
    nodes = [node("Conv", "x w", "c", strides=[4, 4]), node("Relu", "c", "y")]
    line = {"x": ("b", 1, 32, "width")}
    proto = model(nodes, line, constants={"w": randn(0, 4, 1, 4, 4)})
    assert assumed(proto, {}) == {"x": (1, 1, 32, Span(4, 640))}
    nodes = [node("Conv", "x w", "c", strides=[4, 4]), node("Reshape", "c s", "y")]
    constants = {"w": randn(0, 4, 1, 4, 4), "s": np.array([4, 8, 80])}
    assert assumed(model(nodes, line, constants=constants), {}) == {"x": (1, 1, 32, 320)}


def test_what_comes_one_after_the_other_is_a_length_along_a_first_axis_too():
    proto = model([node("Relu", "x", "y")], {"x": ("time", "batch", 9)})
    assert assumed(proto, {}) == {"x": (Span(1, 128), 1, 9)}
    graph = model([node("Gather", "x edges", "y")], {"x": ("nodes", 7), "edges": (2, "edges")})
    graph.graph.input[1].type.tensor_type.elem_type = INTEGERS
    assert assumed(graph, {}) == {"x": (Span(1, 1024), 7), "edges": (2, Span(1, 1024))}


def test_a_length_comes_in_the_steps_of_a_network_that_halves_it():
    nodes = [node("MaxPool", "x", "a", kernel_shape=[4], strides=[4]),
             node("ConvTranspose", "a w", "b", strides=[4]), node("Add", "b x", "y")]  # fmt: skip
    proto = model(nodes, {"x": (1, 2, "n")}, constants={"w": randn(0, 2, 2, 4)})
    assert assumed(proto, {}) == {"x": (1, 2, Span(4, 128, 4))}


def test_several_lengths_are_ranges_by_their_names():
    proto = model([node("MatMul", "x z", "y")], {"x": ("batch", "n", 8), "z": ("batch", 8, "m")})
    assert assumed(proto, {}) == {"x": (1, Span(1, 128), 8), "z": (1, 8, Span(1, 128))}
    assert assumed(proto, {"x": (1, 5, 8)}) == {"z": (1, 8, Span(1, 128))}


def test_images_have_any_size_in_steps_where_the_graph_takes_it():
    assert assumed(images(), {}) == {"x": (1, 3, Span(96, 224, 32), Span(96, 224, 32))}
    head = [node("Flatten", "c", "f"), node("MatMul", "f k", "y")]
    fixed = images(*head, k=randn(0, 4 * 112 * 112, 2))
    assert assumed(fixed, {}) == {"x": (1, 3, 224, 224)}


def test_caches_are_left_to_the_user():
    grown = [node("Concat", "past new", "present", axis=2), node("Relu", "present", "y")]
    inputs = {"past": (1, 2, "p", 4), "new": (1, 2, 1, 4)}
    assert assumed(model(grown, inputs, ("y", "present")), {}) == {}
