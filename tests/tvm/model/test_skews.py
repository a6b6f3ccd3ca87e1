"""Scores of relative positions, which reshapes shift, are read where they lie."""

import numpy as np
import pytest
from helpers.built import run
from helpers.graphs import model, node, randn
from helpers.graphs import run as in_onnxruntime
from helpers.lengths import check
from helpers.ranges import LONG, opened

from ansor_deploy.model.canonicalize import canonical_graph

ONES = {f"c{n}": np.array([n]) for n in (0, 1, 2)}
ONES |= {"far": np.array([1 << 40]), "ahead": np.array([0, 0, 1, 0, 0, 0])}


def shifted(first, part):
    """n x 2n products of the rows of x, shifted, and again a product with x."""
    return [
        node("Shape", "x", "n", start=1, end=2),
        *(node("Add", "n n", "twice"), node("Sub", "twice c1", "odd")),
        *(
            node("Concat", "c1 twice n", "turned", axis=0),
            node("Concat", "c1 n odd", "wide", axis=0),
        ),
        *(node("Concat", "x x", "p", axis=1), node("Transpose", "p", "t", perm=[0, 2, 1])),
        *(node("MatMul", "x t", "w"), *first, node("Reshape", "s turned", "a")),
        *(node("Slice", "a c1 far c1", "b"), node("Reshape", "b wide", "c")),
        *(*part, node("Softmax", "d", "e"), node("MatMul", "e x", "y")),
    ]


ALONE = [node("Identity", "w", "s")]
BEHIND = [node("Slice", "w c1 far c2", "v"), node("Pad", "v ahead", "s")]
SLICED = [node("Slice", "c c0 n c2", "d")]
PICKED = [
    *(node("Squeeze", "n", "count"), node("Squeeze", "c0", "none"), node("Squeeze", "c1", "one")),
    *(node("Range", "none count one", "firsts"), node("Gather", "c firsts", "d", axis=2)),
]
WAYS = {"sliced": (ALONE, SLICED), "picked": (ALONE, PICKED), "padded": (BEHIND, SLICED)}


@pytest.mark.parametrize("way", WAYS)
def test_one_read_is_left(way):
    nodes, shape = shifted(*WAYS[way]), (1, 6, 8)
    proto = model(nodes, {"x": shape}, constants=ONES, opset=18)
    made = [one.op_type for one in canonical_graph(proto).nodes]
    assert made.count("Skewed") == 1
    assert not {"Reshape", "Pad", "Gather"} & set(made)
    x = randn(1, *shape)
    (want,) = in_onnxruntime(proto, {"x": x})
    np.testing.assert_allclose(run(proto, {"x": x})[0], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_one_read_is_left_where_a_run_says_how_many(tmp_path, way):
    nodes = shifted(*WAYS[way])
    proto = model(nodes, {"x": (1, "n", 8)}, constants=ONES, opset=18)
    made = [one.op_type for one in opened(proto, {"x": (1, LONG, 8)}).nodes]
    assert "Skewed" in made
    assert "Repacked" not in made
    check(tmp_path, nodes, (1, "n", 8), ONES, lengths=(96, 61, 2, 1))


@pytest.mark.parametrize("end", [7, 11])
def test_columns_of_two_rows_are_moved_as_written(end):
    """From the eighth on, a column may be of the next row."""
    part = [node("Slice", f"c c0 c{end} c2", "y")]
    nodes = shifted(ALONE, part)[:-2]
    proto = model(nodes, {"x": (1, 6, 8)}, constants={**ONES, f"c{end}": np.array([end])}, opset=18)
    assert "Skewed" not in [one.op_type for one in canonical_graph(proto).nodes]
