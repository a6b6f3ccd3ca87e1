"""TopK is generated code, and gives what ONNX Runtime gives, to the bit."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import run
from helpers.graphs import node

from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.bind import bind_shapes

KINDS = ("float32", "float64", "float16", "int8", "uint8", "int64")
# k, axis and whether the largest are asked for, of tensors [3, 90, 4].
CASES = ((1, 1, 1), (5, 1, 0), (90, 1, 1), (3, 0, 0), (2, -1, 1), (4, 2, 0))


def selecting(shape, cases, kind="float32", **attributes):
    """A model with a TopK for each case, of the same tensor."""
    nodes, outputs, constants = [], {}, {}
    for at, (k, axis, largest) in enumerate(cases):
        words = {"axis": axis, "largest": largest, **attributes}
        nodes.append(node("TopK", f"x k{at}", f"v{at} i{at}", **words))
        constants[f"k{at}"] = np.array([k])
        outputs |= {f"v{at}": kind, f"i{at}": "int64"}
    return graphs.typed(nodes, {"x": (kind, shape)}, outputs, constants)


def assert_same_bits(proto, x):
    for have, want in zip(run(proto, {"x": x}), graphs.run(proto, {"x": x}), strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        assert have.tobytes() == want.tobytes()


def with_ties(kind):
    values = np.random.default_rng(0).integers(-3 if kind[0] != "u" else 0, 4, (3, 90, 4))
    return values.astype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_of_equal_elements_the_first_comes_first(kind):
    assert_same_bits(selecting((3, 90, 4), CASES, kind), with_ties(kind))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_nan_is_the_largest_and_both_zeros_are_one(kind):
    x = with_ties(kind)
    x[x == 2] = np.nan
    x[:, ::7] = -0.0
    x[1, 1], x[1, 2], x[1, 3] = np.inf, -np.inf, -np.nan
    assert_same_bits(selecting((3, 90, 4), CASES, kind), x)


def test_the_greatest_and_the_least_whole_numbers():
    ends = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 0, 2**40, -(2**40)]
    x = np.tile(np.array(ends), (2, 15))
    assert_same_bits(selecting(x.shape, [(90, 1, 1), (20, 1, 0)], "int64"), x)


def test_long_rows_in_threads():
    x = graphs.randn(0, 5, 9000)
    assert_same_bits(selecting(x.shape, [(1200, 1, 1), (3, 1, 0)]), x)
    rising = np.sort(x)  # each element takes the place of another
    assert_same_bits(selecting(x.shape, [(1200, 1, 1), (3, 1, 0)]), rising)


def test_in_any_order_is_in_order():
    x = with_ties("float32")
    proto = bind_shapes(selecting(x.shape, CASES, sorted=0), {})
    assert_same_bits(proto, x)
    for have, want in zip(
        run(proto, {"x": x}), graphs.run(selecting(x.shape, CASES), {"x": x}), strict=True
    ):
        assert have.tobytes() == want.tobytes()


def test_none_of_a_row():
    proto = selecting((3, 90, 4), [(0, 1, 1), (1, 1, 1)])
    assert [one.shape for one in run(proto, {"x": with_ties("float32")})][:2] == [(3, 0, 4)] * 2


def test_more_than_there_are_is_refused():
    with pytest.raises(ModelError, match="less than the requested k elements"):
        run(selecting((3, 90, 4), [(91, 1, 1)]), {"x": with_ties("float32")})
    early = graphs.model([node("TopK", "x", "v i", k=21)], {"x": (3, 20)}, ["v"], opset=9)
    with pytest.raises(ModelError, match=r"less than the requested|axis has 20 elements"):
        run(early, {"x": graphs.randn(0, 3, 20)})


def test_before_opset_10_k_is_an_attribute():
    proto = graphs.model([node("TopK", "x", "v i", k=4)], {"x": (3, 20)}, ["v"], opset=9)
    assert_same_bits(proto, graphs.randn(0, 3, 20))
