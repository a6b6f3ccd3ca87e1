"""Sums, reshapes and look-ups end where what counts ends, and so does all in front of them."""

import numpy as np
import pytest
from helpers.graphs import node, randn, run
from helpers.lengths import check, of_spans

from ansor_deploy._tvm import tirx
from ansor_deploy.codegen.lengths import whole
from ansor_deploy.codegen.lengths.asked import Known, limits_of
from ansor_deploy.codegen.lengths.behind import note_behind
from ansor_deploy.codegen.lengths.bound import Bound
from ansor_deploy.model.batches import Span
from ansor_deploy.space.block_view import sums_products

WIDTH = 32


@pytest.mark.parametrize("most", [4096, 4099])
def test_long_sums_end(tmp_path, kernels, most):
    """Those by rows, and those of which each core has a part."""
    nodes = [node("ReduceSum", "x axes", "m"), node("Sub", "x m", "y")]
    spans, constants = {"n": Span(1, most)}, {"axes": np.array([1])}
    proto, _, function = of_spans(tmp_path, nodes, (1, "n", WIDTH), constants, spans)
    summed = {name for name in kernels[0] if "sum" in name}
    assert len(summed) == (2 if most % 2 == 0 else 1)
    assert all(name.endswith("counted") for name in summed)
    for length in (most, 2050, 129, 7):
        room, made = (np.full((1, most, WIDTH), np.nan, np.float32) for _ in range(2))
        room[:, :length] = x = randn(length, 1, length, WIDTH)
        function([room, np.array(length, np.int64)], [made, np.zeros((), np.int64)])
        (want,) = run(proto, {"x": x})
        np.testing.assert_allclose(made[:, :length], want, rtol=1e-4, atol=1e-3)


def test_rows_that_are_parted_and_joined_end_as_well(tmp_path, kernels):
    """As where features of two frames are computed as one."""
    half = WIDTH // 2
    nodes = [
        *(node("MatMul", "x w", "a"), node("Shape", "x", "n", start=1, end=2)),
        *(node("Mul", "n two", "m"), node("Concat", "one m half", "s", axis=0)),
        *(node("Reshape", "a s", "r"), node("MatMul", "r v", "b")),
        *(node("Concat", "one n wide", "t", axis=0), node("Reshape", "b t", "c")),
        node("MatMul", "c w", "y"),
    ]
    constants = {"one": np.array([1]), "two": np.array([2])}
    constants |= {"half": np.array([half]), "wide": np.array([WIDTH])}
    constants |= {"w": randn(1, WIDTH, WIDTH), "v": randn(2, half, half)}
    check(tmp_path, nodes, (1, "n", WIDTH), constants, lengths=(96, 61, 2))
    products = [name for name in kernels[0] if name.startswith("matmul")]
    assert len(products) == 3
    assert all(name.endswith("counted") for name in products), products


def test_pairs_of_places_in_a_table_end(tmp_path, kernels):
    """As biases of relative positions do."""
    nodes = [
        *(node("Shape", "x", "m", start=1, end=2), node("Squeeze", "m", "n")),
        *(node("Range", "zero n one", "columns"), node("Unsqueeze", "columns last", "rows")),
        *(node("Sub", "columns rows", "d"), node("Mul", "d d", "q"), node("Min", "q most", "k")),
        *(node("Gather", "table k", "b"), node("MatMul", "b x", "y")),
    ]
    constants = {"zero": np.int64(0), "one": np.int64(1), "last": np.array([1])}
    constants |= {"most": np.int64(8), "table": randn(1, 9)}
    check(tmp_path, nodes, (1, "n", WIDTH), constants)
    assert not {name for name in kernels[0] if name.startswith("in_range")} - {"in_range1"}
    assert "places1" in kernels[0]


def test_the_range_of_bytes_is_found_in_what_counts(tmp_path, kernels):
    nodes = [
        *(node("DynamicQuantizeLinear", "x", "q s z"), node("MatMulInteger", "q w z", "i")),
        *(node("Cast", "i", "c", to=1), node("Mul", "c s", "y")),
    ]
    weights = np.arange(WIDTH * WIDTH, dtype=np.int32).reshape(WIDTH, WIDTH) % 253 - 126
    check(tmp_path, nodes, (1, "n", WIDTH), {"w": weights.astype(np.int8)})
    ends = [name for name in kernels[0] if "_max" in name or "_min" in name]
    assert len(ends) == 2, kernels[0]
    assert all("where" in name and "counted" in name for name in ends), ends


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_what_a_recurrent_layer_reads_ends(tmp_path, kernels, op, gates):
    nodes = [
        *(node("MatMul", "x v", "a"), node("Transpose", "a", "t", perm=[1, 0, 2])),
        node(op, "t w r", "h", hidden_size=WIDTH, direction="bidirectional"),
        *(node("Reshape", "h s", "y"),),
    ]
    constants = {"v": randn(1, WIDTH, WIDTH), "s": np.array([-1, 2 * WIDTH])}
    constants |= {name: randn(3, 2, gates * WIDTH, WIDTH) / 8 for name in "wr"}
    check(tmp_path, nodes, (1, "n", WIDTH), constants, behind=96)
    products = [name for name in kernels[0] if "matmul" in name]
    assert len(products) == 2
    assert all(name.endswith("counted") for name in products), products


def test_the_border_of_an_image_of_one_channel_ends(tmp_path, kernels):
    """Its rows are single loops: the border of one of 3000 columns took 2.4 ms for one of them."""
    nodes = [node("Unsqueeze", "x first", "i"), node("Conv", "i w", "c", pads=[1, 1, 1, 1])]
    nodes.append(node("ReduceSum", "c channels", "y", keepdims=0))
    constants = {"first": np.array([1]), "channels": np.array([1]), "w": randn(1, 8, 1, 3, 3)}
    check(tmp_path, nodes, (1, WIDTH, "n"), constants)
    assert any("conv2d" in name and name.endswith("counted") for name in kernels[0])


@pytest.mark.parametrize(("taps", "stride", "pad", "outputs"), [(4, 2, 1, 16), (9, 4, 3, 3)])
def test_transposed_convolutions_end(tmp_path, monkeypatch, taps, stride, pad, outputs):
    """As in decoders of audio and of images, whatever way their phases are computed."""
    ends, cut = [], whole.cut

    def noted(body, found, limits, numbers):
        pairs = zip(found, limits, strict=True)
        ends.extend(bool(limit) for leaf, limit in pairs if sums_products(leaf.block.body))
        return cut(body, found, limits, numbers)

    monkeypatch.setattr(whole, "cut", noted)
    words = {"strides": [stride], "pads": [pad, pad]}
    nodes = [node("ConvTranspose", "x w", "t", **words), node("Tanh", "t", "y")]
    check(tmp_path, nodes, (1, 16, "n"), {"w": randn(2, 16, outputs, taps) / 8}, (96, 17, 1))
    assert ends
    assert all(ends)


def test_what_mirrored_borders_are_of_ends(tmp_path, kernels):
    nodes = [node("Conv", "x w", "a"), node("Pad", "a pads", "p", mode="reflect")]
    nodes.append(node("Conv", "p v", "y"))
    constants = {"pads": np.array([0, 0, 3, 0, 0, 0]), "w": randn(1, 16, 16, 1) / 8}
    check(tmp_path, nodes, (1, 16, "n"), constants | {"v": randn(2, 16, 16, 4) / 8}, (96, 17, 5))
    convolutions = [name for name in kernels[0] if "conv1d" in name]
    assert len(convolutions) == 2
    assert all(name.endswith("counted") for name in convolutions), convolutions


def test_places_in_groups_end_with_the_last_group_that_counts():
    place, phase = tirx.Var("place", "int64"), tirx.Var("phase", "int64")
    ends = {(place, 0): Bound.of("n").divided(4)}
    assert dict(limits_of(place * 4 + phase + 1, 0, Bound.of("n"))) == ends
    assert not dict(limits_of(place * 4 + tirx.const(-1, "int64"), 0, Bound.of("n")))


@pytest.mark.parametrize("begins", [True, False])
def test_what_is_added_to_something_else_is_not_known_behind_a_bound(begins):
    made, given, count = (
        tirx.decl_buffer(shape, dtype)
        for shape, dtype in (((8,), "float32"), ((8,), "float32"), ((), "int64"))
    )
    at, zero = tirx.Var("at", "int64"), tirx.const(0.0)
    masked = tirx.Select(at < count[()], given[at], zero)
    adding = tirx.BufferStore(made, made[at] + masked, [at])
    known = Known(numbers={count: Bound.of("n")})
    note_behind([tirx.BufferStore(made, zero, [at])] * begins + [adding], known)
    assert known.behind == ({made: {0: (Bound.of("n"), 0.0)}} if begins else {})
