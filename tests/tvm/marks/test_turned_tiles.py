"""Tiles that are turned in registers: right for any extents, and shuffles where they are whole."""

import numpy as np
import pytest
from helpers import built, programs
from helpers.graphs import model, node

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.space.default_schedule import default_schedule
from benchmarks.fuzz.layouts import fault


def lowered(mod):
    return _cut_off(default_schedule(mod, built.HOST).mod)["main"]


@pytest.mark.parametrize("shape", [(64, 80), (67, 75), (8, 700), (700, 9), (197, 64), (5, 1000)])
def test_a_matrix_is_transposed_whatever_its_extents(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (have,) = built.run(model([node("Transpose", "x", "y", perm=[1, 0])], {"x": shape}), {"x": x})
    np.testing.assert_array_equal(have, x.T)


@pytest.mark.parametrize("last", [[1, 1, -1], [1, 21, 8, 9]])
def test_an_image_is_turned_and_reshaped_and_added_to(last):
    nodes = [node("Transpose", "x", "t", perm=[0, 3, 1, 2]), node("Reshape", "t s", "r")]
    nodes += [node("Mul", "r two", "m"), node("Add", "m b", "y")]
    b = np.linspace(0, 1, 72 * 21, dtype=np.float32).reshape(last)
    constants = {"s": np.int64(last), "two": np.float32(2), "b": b}
    x = np.linspace(-1, 1, 72 * 21, dtype=np.float32).reshape(1, 8, 9, 21)
    (have,) = built.run(model(nodes, {"x": x.shape}, constants=constants), {"x": x})
    np.testing.assert_array_equal(have, x.transpose(0, 3, 1, 2).reshape(last) * 2 + b)


@pytest.mark.parametrize("mod", [programs.DRAWN["image"], programs.flattened])
def test_whole_tiles_are_of_shuffles(mod):
    assert len(collect(lowered(mod()).body, tirx.Shuffle)) == 24


@pytest.mark.parametrize("pads", [[0, 2, 0, 0], [0, 0, 0, 3]])
def test_what_is_padding_is_not_read(pads, tmp_path):
    nodes = [node("Pad", "x p", "padded"), node("Transpose", "padded", "y", perm=[1, 0])]
    proto = model(nodes, {"x": (144, 80)}, constants={"p": np.array(pads)})
    assert fault(proto, True, "host", tmp_path) == ""


def test_wider_elements_are_moved_one_by_one():
    x = np.arange(80 * 72, dtype=np.float64).reshape(80, 72)
    nodes = [node("Transpose", "x", "y", perm=[1, 0])]
    proto = model(nodes, {"x": x.shape})
    proto.graph.input[0].type.tensor_type.elem_type = 11
    proto.graph.output[0].type.tensor_type.elem_type = 11
    (have,) = built.run(proto, {"x": x})
    np.testing.assert_array_equal(have, x.T)
