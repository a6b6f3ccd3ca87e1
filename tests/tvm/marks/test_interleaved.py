"""Planes that become an image of few channels: right for any extents, stored in whole vectors."""

import numpy as np
import pytest
from helpers import built, programs
from helpers.graphs import model, node

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.kernels.lowering import flattening
from ansor_deploy.marks.interleaved import interleaved
from ansor_deploy.space.default_schedule import default_schedule


@pytest.mark.parametrize("shape", [(1, 3, 16, 32), (2, 3, 23, 29), (3, 2, 5, 64), (1, 4, 40, 9)])
def test_planes_are_interleaved_whatever_their_extents(shape):
    nodes = [node("Mul", "x two", "m"), node("Transpose", "m", "y", perm=[0, 2, 3, 1])]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    proto = model(nodes, {"x": shape}, constants={"two": np.float32(2)})
    (have,) = built.run(proto, {"x": x})
    np.testing.assert_array_equal(have, 2 * x.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("shape", [(1, 3, 16, 32), (1, 3, 23, 29)])
def test_an_image_becomes_bytes_on_the_way(shape):
    nodes = [node("QuantizeLinear", "x s z", "q"), node("Transpose", "q", "t", perm=[0, 2, 3, 1])]
    nodes += [node("Cast", "t", "y", to=1)]
    constants = {"s": np.float32(0.5), "z": np.uint8(9)}
    x = np.linspace(-99, 99, np.prod(shape), dtype=np.float32).reshape(shape)
    (have,) = built.run(model(nodes, {"x": shape}, constants=constants), {"x": x})
    wanted = np.clip(np.rint(x / np.float32(0.5)) + 9, 0, 255)
    np.testing.assert_array_equal(have, wanted.transpose(0, 2, 3, 1))


def test_three_vectors_are_one_store():
    sch = default_schedule(programs.DRAWN["planes"](), built.HOST)
    vectors = [*flattening(), tirx.transform.VectorizeLoop()]
    made = interleaved(tvm.transform.Sequential(vectors)(sch.mod)["main"])
    (store,) = collect(made.body, tirx.BufferStore)
    assert store.value.ty.dtype.lanes == 3 * built.HOST.vector_bytes // 4
