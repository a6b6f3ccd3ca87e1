"""Numbers that a run decides: what cancels out is gone, and bounds hold."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.graphs import model, node
from onnx import TensorProto

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.counted.groups import completed, grouped
from ansor_deploy.model.counted.numbers import larger, least, most, quotient, root, smaller, symbol
from ansor_deploy.model.counted.shares import is_held, keeps, share

INT64 = TensorProto.INT64
N = symbol("n", 0, (0, 300), "NonZero 'n'")
M = symbol("m", 0, (2, 7), "NonZero 'm'")


def test_what_cancels_out_is_gone():
    assert N + (300 - N) == 300
    assert (N + M) * 2 - N * 2 - M - M == 0
    assert quotient(N * 28 - 14, 7) == N * 4 - 2
    assert quotient(N * 28 - 15, 7) is None


def test_products_are_multiplied_out():
    assert (N + 1) * (M - 1) - N * M == M - N - 1
    assert quotient(N * M * 12, M * 4) == N * 3
    assert quotient(N * M * 12, N * M) == 12
    assert quotient(N * N, M) is None
    assert quotient(N * M + N, N) == M + 1
    assert quotient(N * M + 1, N) is None
    assert quotient(N * M * 12 + 4, N * M * 3 + 1) == 4
    assert quotient((N + 1) * (M * 2 - 3), N + 1) == M * 2 - 3
    assert quotient((N + M) * (N + M), N + M) == N + M
    assert quotient((N + 1) * (N + 2) + 1, N + 1) is None


def test_roots_are_those_of_squares():
    assert (root(49), root(48), root(-4)) == (7, None, None)
    assert root(N * N * M * M * 4) == N * M * 2
    assert root(N * N * 3) is root(N * M) is root(N * N + 1) is None
    below = symbol("b", 0, (-3, 3), "NonZero 'b'")
    assert root(below * below) is None


def test_axes_with_as_many_elements_are_groups():
    assert grouped([1, 8, N, M], [1, 8, N * M]) == [([1], [1]), ([8], [8]), ([N, M], [N * M])]
    assert grouped([8, N * M], [2, 4, M, N]) == [([8], [2, 4]), ([N * M], [M, N])]
    assert grouped([N, 1], [N]) == [([N, 1], [N])]
    assert grouped([N, M], [N]) is None
    assert completed([3, -1], [N, 3, M]) == [3, N * M]
    assert completed([N, -1], [N, 3, M]) == [N, M * 3]
    assert completed([5, -1], [N, 3]) is None
    assert completed([M + 1, -1], [M + 1, 4, 16]) == [M + 1, 64]


def test_bounds_are_those_of_the_symbols():
    assert (least(300 - N), most(300 - N)) == (0, 300)
    assert (least(N * M), most(N * M)) == (0, 2100)
    assert (least(M * 3 - N), most(M * 3 - N)) == (6 - 300, 21)


def test_the_less_of_two_is_known_where_bounds_say_so():
    assert smaller(N, 300) == N
    assert smaller(N, N + M) == N
    assert larger(N, 0) == N
    assert smaller(N, M) is None


def test_thirds_are_rounded_before_anything_else_is_done_with_them():
    """Three times a third of 3 is no 3 in float32."""
    third = share(M, 3)
    assert (least(third), most(third)) == (Fraction(2, 3), Fraction(7, 3))
    assert keeps("Add", (third, 1))
    assert keeps("Sub", (1, third))
    assert not keeps("Mul", (third, 3))
    assert not keeps("Add", (third, third))
    assert not keeps("Add", (third, share(M, 2)))
    assert share(M, 65) is None
    assert share(third, 3) is None
    assert keeps("Mul", (share(M, 4), 4))


def test_parts_of_large_sizes_are_known_where_float32_distinguishes_them():
    samples = symbol("n", 0, (1, 1 << 22), "the length of its inputs")
    assert is_held(share(samples, 5))
    assert not is_held(share(samples, 5) * 2)
    assert share(samples * 2, 2) is None
    assert share(share(samples, 2), 2) is None


def test_rows_that_are_filled_up_are_of_a_static_size():
    """As exported detectors do it: so many rows are found, and zeros laid behind them."""
    nodes = [
        node("NonZero", "x", "found"),
        node("Transpose", "found", "places", perm=[1, 0]),
        node("GatherND", "x places", "values"),
        node("Shape", "values", "size"),
        node("Sub", "all size", "rest"),
        node("Concat", "none rest", "pads", axis=0),
        node("Pad", "values pads", "y"),
    ]
    constants = {"all": np.array([12]), "none": np.array([0])}
    graph = canonical_graph(model(nodes, {"x": (3, 4)}, constants=constants))
    assert graph.shapes["y"] == (12,)
    assert not graph.lengths


def test_a_result_of_open_size_goes_with_its_length():
    graph = canonical_graph(
        model([node("NonZero", "x", "f"), node("Cast", "f", "y", to=1)], {"x": (3, 4)})
    )
    assert graph.shapes["y"] == (2, 12)
    assert [(one.output, one.axis, one.name) for one in graph.lengths] == [("y", 1, "y.length")]
    assert graph.output_names == {"y", "y.length"}


@pytest.mark.parametrize("read", ["x", "s"])
def test_a_size_that_a_run_computes_is_refused_before_what_follows_is_worked_out(read):
    sizes = node("Shape", "x", "n") if read == "x" else node("Cast", "s", "n", to=INT64)
    resized = node("Resize", "x - - n", "r", mode="linear")
    found = [node("NonZero", "x", "found"), node("Unique", "found", "y")]
    names = "Unique" if read == "x" else "'r': Resize: its input 'n' must be a constant"
    proto = model([sizes, resized, *found], {"x": (1, 1, 4, 4), "s": (4,)}, ("r", "y"))
    with pytest.raises(ModelError, match=names):
        canonical_graph(proto)
