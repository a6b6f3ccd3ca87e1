"""torchvision's masks, pasted into images: a loop that resizes each to a size of its own."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported
from helpers.graphs import node
from onnx import TensorProto, helper

from ansor_deploy.devices.bare import open_bare
from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

BOOL, FLOAT, INT64 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64
NUMBERS = {
    "zero": 0, "one": 1, "rows": [1, 0], "lasts": [3, 2], "image": [11, 13], "origin": [0, 0],
    "alone": [1, 1], "axes": [0, 1],
}  # fmt: skip
BOXES = np.array([
    (1, 2, 6, 9), (-3, 0, 4, 5), (8, 7, 16, 12), (0, -4, 2, 20), (-5, -5, 30, 30), (4, 4, 4, 4),
    (5, 5, 3, 3),
])  # fmt: skip


def pasted(mode="linear", kept=None):
    """The masks x, each resized to its box and pasted. kept: whether a run chooses some of them."""
    body = [
        node("Gather", "masks i", "mask"), node("Unsqueeze", "mask front", "batch"),
        node("Gather", "boxes i", "box"),
        node("Gather", "box rows", "first"), node("Gather", "box lasts", "last"),
        node("Sub", "last first", "apart"), node("Add", "apart one", "open"),
        node("Max", "open one", "size"), node("Concat", "alone size", "sizes", axis=0),
        node("Resize", "batch - - sizes", "wide", mode=mode),
        node("Squeeze", "wide axes", "plane"),
        node("Add", "last one", "behind"), node("Max", "first zero", "begin"),
        node("Min", "behind image", "end"),
        node("Sub", "begin first", "skip"), node("Sub", "end first", "stop"),
        node("Slice", "plane skip stop axes", "part"), node("Sub", "image end", "after"),
        node("Concat", "begin after", "around", axis=0), node("Pad", "part around", "large"),
        node("Slice", "large origin image axes", "row"), node("Unsqueeze", "row front", "new"),
        node("Concat", "all new", "more", axis=0), node("Identity", "on", "still"),
    ]  # fmt: skip
    value = helper.make_tensor_value_info
    ends = [value("i", INT64, ()), value("on", BOOL, ()), value("all", FLOAT, (None, 11, 13))]
    made = [value("still", BOOL, ()), value("more", FLOAT, (None, 11, 13))]
    loop = helper.make_graph(body, "body", ends, made)
    chosen = [
        node("NonZero", "keep", "at_"), node("Squeeze", "at_ front", "at"),
        node("Gather", "x at", "masks"), node("Gather", "b at", "boxes"),
    ]  # fmt: skip
    steps = [
        *(chosen if kept else [node("Identity", "x", "masks"), node("Identity", "b", "boxes")]),
        node("Shape", "masks", "sizes_"), node("Gather", "sizes_ zero", "count"),
        node("Loop", "count true start", "y", body=loop),
    ]  # fmt: skip
    inputs = {"x": (FLOAT, (7, 1, 4, 4)), "b": (INT64, (7, 4))}
    constants = {name: np.array(one, np.int64) for name, one in NUMBERS.items()}
    constants |= {"front": np.array([0]), "true": np.True_, "start": np.zeros((0, 11, 13), "f4")}
    return graphs.typed(steps, {**inputs, **(kept or {})}, {"y": FLOAT}, constants)


def test_masks_are_pasted_into_images(tmp_path):
    proto = pasted(kept={"keep": (BOOL, (7,))})
    (interface,) = imported(proto).interfaces
    compiled(proto).export(tmp_path / "model.so", HOST)
    x = np.random.default_rng(0).random((7, 1, 4, 4), np.float32)
    manifest = {**interface.to_json(), "target": HOST.to_json()}
    with open_bare() as bare:
        library = bare.load(tmp_path / "model.so", manifest)
        for keep in (np.ones(7, bool), np.arange(7) % 3 == 1):
            feed = {"x": x, "b": BOXES, "keep": keep}
            wanted = graphs.run(proto, feed)[0]
            np.testing.assert_allclose(library(**feed)["y"], wanted, rtol=0, atol=1e-5)


def test_a_known_number_of_masks_is_pasted():
    assert "Loop" not in {one.op_type for one in canonicalize(pasted()).graph.node}


def test_masks_of_nearest_elements_are_not_pasted_so():
    with pytest.raises(ModelError, match="Resize"):
        imported(pasted("nearest"))
