"""What a size is computed from is sought as far as arithmetic of sizes goes, and no further."""

import numpy as np
import pytest
from helpers import graphs
from helpers.graphs import node, randn
from helpers.tried import assumed
from onnx import TensorProto

from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.counted import unbounded

LAYERS, SIZES = 40, 5


def test_layers_before_a_size_are_not_looked_at(monkeypatch):
    seen, sources = [], unbounded._sources
    monkeypatch.setattr(
        unbounded, "_sources", lambda known, body: seen.append(len(body)) or sources(known, body)
    )
    layers = [node("Sin", f"x{at}", f"x{at + 1}") for at in range(LAYERS)]
    counts = [
        made
        for at in range(SIZES)
        for made in (
            node("ReduceSum", f"x{LAYERS - at}", f"sum{at}", keepdims=0),
            node("Cast", f"sum{at}", f"n{at}", to=TensorProto.INT64),
            node("Add", f"n{at} one", f"m{at}"),
            node("Range", f"none m{at} one", f"y{at}"),
        )
    ]
    names = [f"y{at}" for at in range(SIZES)]
    proto = graphs.typed(
        [*layers, *counts],
        {"x0": (TensorProto.FLOAT, [5])},
        dict.fromkeys(names, TensorProto.INT64),
        {"one": np.array(1), "none": np.array(0)},
    )
    assert [one.output for one in canonical_graph(proto).lengths] == names
    # The sum and the Cast end the search at the layer that makes what is added up.
    assert seen == [4] * SIZES


@pytest.mark.parametrize(("rows", "most"), [(1024, 128), (500, 500)])
def test_a_square_of_places_beside_images_is_no_table_of_a_text(rows, most):
    """As in Stable Diffusion 3, which cuts the places of a latent image out of a large table."""
    constants = {"pos": randn(0, rows, 4), "from": np.array([0]), "axes": np.array([0])}
    nodes = [node("Shape", "text", "n", start=1, end=2), node("Slice", "pos from n axes", "p"),
             node("Add", "text p", "y"), node("Relu", "x", "z")]  # fmt: skip
    inputs = {"x": (1, 4, "h", "w"), "text": (1, "tokens", 4)}
    proto = graphs.model(nodes, inputs, ("y", "z"), constants=constants)
    assert assumed(proto, {})["text"] == (1, Span(1, most), 4)
