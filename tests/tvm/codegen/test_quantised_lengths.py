"""Integers of images of any size are those of a library for that size alone, to the last bit."""

import numpy as np
import pytest
from helpers.built import HOST, main_of
from helpers.graphs import model, node, randn
from helpers.ranges import opened

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model
from ansor_deploy.ship.verify.exact import exact_outputs
from benchmarks.networks.quantised import quantised

WIDTH, MOST = 8, 24
PADDED = {"kernel_shape": [3, 3], "pads": [1] * 4}


def network():
    """Every border is padded, and what lies behind the last element is seen by each window."""
    nodes = [
        node("Conv", "x w1 b1", "c", pads=[1] * 4),
        node("MaxPool", "c", "m", strides=[2, 2], **PADDED),
        node("Conv", "m w2 b2", "d", pads=[1] * 4, group=WIDTH),
        node("Add", "d m", "s"),
        node("AveragePool", "s", "a", **PADDED),
        node("GlobalAveragePool", "a", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w3 b3", "y", transB=1),
    ]
    shapes = {"w1": (WIDTH, 3, 3, 3), "b1": (WIDTH,), "w2": (WIDTH, 1, 3, 3), "b2": (WIDTH,),
              "w3": (64, WIDTH), "b3": (64,)}  # fmt: skip
    constants = {name: 0.3 * randn(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    return model(nodes, {"x": (1, 3, MOST, MOST)}, ("a", "y"), constants)


@pytest.fixture(scope="module")
def proto():
    made = quantised(network(), "qdq")
    for axis in made.graph.input[0].type.tensor_type.shape.dim[2:]:
        axis.Clear()
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    del made.graph.value_info[:]
    return made


def compiled(graph):
    """The function of a graph."""
    imported = import_model(graph, HOST)
    tasks = extract(imported.mod, HOST)
    return main_of(compile_model(imported, tasks, {}, HOST))


@pytest.fixture(scope="module")
def any_size(proto):
    sizes = Span(4, MOST)
    return compiled(opened(proto, {"x": (1, 3, sizes, sizes)}))


def outputs(function, *given):
    import tvm

    return [one.numpy() for one in function(*map(tvm.runtime.tensor, given))]


def of_size(any_size, x):
    """What the library for any size makes of an image."""
    room = np.full((1, 3, MOST, MOST), np.nan, np.float32)
    room[:, :, : x.shape[2], : x.shape[3]] = x
    made = outputs(any_size, room, *(np.array(n, np.int64) for n in x.shape[2:]))
    high, wide = (-(-n // 2) for n in x.shape[2:])
    return made[0][:, :, :high, :wide], made[1]


@pytest.mark.parametrize("size", [(MOST, MOST), (17, 10), (4, 23), (5, 5)])
def test_integers_are_what_they_come_to(proto, any_size, size):
    """As NumPy computes them of the network for that size alone."""
    x = randn(sum(size), 1, 3, *size)
    want = exact_outputs(bind_shapes(proto, {"x": x.shape}), (), {"x": x})
    for name, have in zip(("a", "y"), of_size(any_size, x), strict=True):
        np.testing.assert_array_equal(have, want[name])


def test_a_library_for_that_size_alone_makes_the_same_bytes(proto, any_size):
    x = randn(3, 1, 3, 11, 18)
    function = compiled(canonical_graph(bind_shapes(proto, {"x": x.shape})))
    for have, want in zip(of_size(any_size, x), outputs(function, x), strict=True):
        assert have.tobytes() == want.tobytes()
