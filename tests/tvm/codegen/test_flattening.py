"""Flat buffers are read where the tensors were, whatever is added before a division."""

import numpy as np
import pytest
import tvm
from helpers import built, graphs
from helpers.graphs import model, node
from onnx import ModelProto
from tvm import te, tirx

from ansor_deploy.testing.rule import kernel_outputs

ROWS = np.arange(72)
# Indices that TVM's own pass changes to others, and where an element is read; else it is a zero.
INDICES = {
    "an offset in a row": (lambda i: (i % 8 + 3) // 8, lambda _: True),
    "an offset before it": (lambda i: (i % 8 - 1) // 8 + 1, lambda _: True),
    "a bound from below": (lambda i: (i // 32 + 1) % 2, lambda i: i >= 8),
    "an offset and a bound": (lambda i: (i % 64 - 4) // 8, lambda i: i % 64 >= 4),
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_means_the_same_in_a_flat_buffer(name):
    index, reads = INDICES[name]
    x = te.placeholder((72, 2), name="x")
    rows = te.compute(
        (72, 2), lambda i, j: tirx.if_then_else(reads(i), x[index(i), j], tirx.const(0, "float32"))
    )
    func = te.create_prim_func([x, rows], index_dtype_override="int64")
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    given, have = kernel_outputs(mod)
    want = np.where([[reads(i)] for i in ROWS], given[np.maximum(index(ROWS), 0)], 0)
    np.testing.assert_array_equal(have, want)


def rolled(axes: tuple[int, ...], side: int = 8, window: int = 4, channels: int = 20) -> ModelProto:
    """An image of windows, each a row, put together, turned by two pixels, and made rows again."""
    grid = [1, side // window, side // window, window, window, channels]
    nodes = [
        node("Reshape", "x grid", "g"),
        node("Transpose", "g", "t", perm=[0, 1, 3, 2, 4, 5]),
        node("Reshape", "t image", "i"),
    ]
    image = "i"
    for axis in axes:
        nodes += [
            node("Slice", f"{image} begin cut a{axis}", f"l{axis}"),
            node("Slice", f"{image} cut end a{axis}", f"r{axis}"),
            node("Concat", f"r{axis} l{axis}", image := f"c{axis}", axis=axis),
        ]
    nodes.append(node("Reshape", f"{image} rows", "y"))
    sizes = {"grid": grid, "image": [1, side, side, channels], "rows": [1, side**2, channels]}
    cuts = {"begin": [0], "cut": [side - 2], "end": [side], **{f"a{axis}": [axis] for axis in axes}}
    constants = {name: np.array(value) for name, value in {**sizes, **cuts}.items()}
    return model(nodes, {"x": (side, side, channels)}, constants=constants)


@pytest.mark.parametrize("axes", [(1,), (2,), (1, 2)])
def test_windows_that_are_put_together_and_rolled(axes):
    """Of shifted windows (Swin, HAT), in channels that no vector divides."""
    proto = rolled(axes)
    feeds = graphs.random_feeds(proto)
    np.testing.assert_array_equal(built.run(proto, feeds)[0], graphs.run(proto, feeds)[0])
