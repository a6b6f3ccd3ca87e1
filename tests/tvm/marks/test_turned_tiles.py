"""Tiles that are turned in registers: right for any extents, and shuffles where they are whole."""

import numpy as np
import onnx
import pytest
from helpers import built, programs
from helpers.graphs import model, node
from onnx import TensorProto

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.model.prepare import prepare
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


@pytest.mark.parametrize("shape", [(64, 80), (67, 75), (12, 700), (700, 5)])
def test_bytes_are_transposed_and_computed_with_whatever_their_extents(shape):
    x = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    nodes = [node("Transpose", "x", "t", perm=[1, 0]), node("DequantizeLinear", "x s z", "d")]
    nodes += [
        node("Abs", "d", "a"),
        node("Add", "a d", "e"),
        node("Transpose", "e", "y", perm=[1, 0]),
    ]
    constants = {"s": np.float32(0.5), "z": np.uint8(100)}
    proto = model(nodes, {"x": shape}, ["t", "y"], constants)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    moved, computed = built.run(proto, {"x": x})
    np.testing.assert_array_equal(moved, x.T)
    real = (x.astype(np.float32) - 100) * np.float32(0.5)
    np.testing.assert_array_equal(computed, (abs(real) + real).T)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("extents", [(80, 64), (66, 61)])
def test_parts_of_a_concatenation_are_turned_each_by_itself(axis, extents):
    shapes = [(80, 72), (80, 48)] if axis else [(48, 64), (80, 64)]
    shapes = [tuple(min(pair) for pair in zip(shape, extents, strict=True)) for shape in shapes]
    nodes = [node("Abs", "x", "a"), node("Concat", "a z", "c", axis=axis)]
    nodes += [node("Mul", "c c", "m"), node("Transpose", "m", "y", perm=[1, 0])]
    x, z = (np.linspace(-3, 5, np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    (have,) = built.run(model(nodes, {"x": x.shape, "z": z.shape}), {"x": x, "z": z})
    np.testing.assert_array_equal(have, (np.concatenate([abs(x), z], axis) ** 2).T)


def test_a_tile_asks_once_of_which_part_it_is(tmp_path):
    nodes = [node("Concat", "x z", "c", axis=1), node("Abs", "c", "a")]
    nodes += [node("Transpose", "a", "y", perm=[1, 0])]
    proto = model(nodes, {"x": (80, 64), "z": (80, 64)})
    onnx.save(proto, tmp_path / "net.onnx")
    (task,) = prepare(tmp_path / "net.onnx", built.HOST).tasks
    assert len(collect(lowered(task.mod).body, tirx.Shuffle)) == 2 * 24


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
