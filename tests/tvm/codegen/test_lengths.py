"""Kernels whose loops end where what counts ends: what lies behind is not computed."""

import numpy as np
import pytest
from helpers.built import HOST
from helpers.graphs import model, node, randn, run
from helpers.lengths import MOST, check, library, of_spans
from helpers.ranges import opened

from ansor_deploy._tvm import collect, structural_map, sym, tirx, tvm
from ansor_deploy.codegen.lengths import whole
from ansor_deploy.codegen.lengths.bound import Bound
from ansor_deploy.codegen.lengths.small_tiles import Rows
from ansor_deploy.codegen.model import Scheduled, compile_model
from ansor_deploy.marks.turned_tiles import TURNED
from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model
from ansor_deploy.runtime.functions import into_functions
from ansor_deploy.space.block_view import sums_products

WIDTH = 32


def test_rows_of_products_and_norms(tmp_path):
    nodes = [
        node("MatMul", "x w", "h"),
        node("Relu", "h", "r"),
        node("LayerNormalization", "r s b", "l", axis=-1),
        node("Add", "l x", "y"),
    ]
    constants = {"w": randn(1, WIDTH, WIDTH), "s": randn(2, WIDTH), "b": randn(3, WIDTH)}
    check(tmp_path, nodes, (1, "n", WIDTH), constants)


def test_few_rows_are_computed_in_small_tiles(tmp_path):
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    check(tmp_path, nodes, (1, "n", WIDTH), {"w": randn(1, WIDTH, 256)}, range(1, 15))


@pytest.mark.parametrize(("vectors", "small"), [(4, [(1, 1), (2, 2)]), (2, [(2, 2)])])
def test_a_row_of_several_vectors_is_a_tile_of_its_own(vectors, small):
    def unrolled(extent, body):
        return tirx.For(tirx.Var("at", "int64"), 0, extent, tirx.ForKind.UNROLLED, body)

    assert Rows(0, [unrolled(6, unrolled(vectors, tirx.Evaluate(0)))]).small == small


def test_rows_of_products_with_weights_in_blocks(tmp_path):
    product = node("MatMulNBits", "x q s", "h", N=WIDTH, K=WIDTH, bits=4, block_size=16)
    product.domain = "com.microsoft"
    packed = np.random.default_rng(0).integers(0, 256, (WIDTH, WIDTH // 16, 8)).astype(np.uint8)
    constants = {"q": packed, "s": np.full((WIDTH, WIDTH // 16), 0.1, np.float32)}
    check(tmp_path, [product, node("Relu", "h", "y")], (1, "n", WIDTH), constants)


def test_a_length_that_is_in_no_range_fails(tmp_path):
    """Else what the library says of its results would lead a program of C beyond them."""
    _, one, function = library(tmp_path, [node("Relu", "x", "y")], (1, "n", WIDTH), {})
    room, made = (np.zeros(info.shape, np.float32) for info in (one.inputs[0], one.outputs[0]))
    for length in (-1, 0, MOST + 1):
        with pytest.raises(IndexError, match=r"it is not in 1 \.\. 96"):
            function([room, np.array(length, np.int64)], [made, np.zeros((), np.int64)])


def test_a_number_divided_twice_is_known_exactly():
    """Else images of half the size of halves would have a line and a column more."""
    halves = Bound.of("n").scaled(1, 1).floored(2).scaled(1, 1).floored(2)
    for n in range(1, 40):
        made = halves.expression({"n": (0, tirx.const(n, "int64"))})
        assert int(made) == ((n + 1) // 2 + 1) // 2


def heads():
    """Attention of rows: its nodes and constants."""
    nodes = [
        node("Reshape", "x form", "f"),
        node("Transpose", "f", "q", perm=[0, 2, 1, 3]),
        node("Transpose", "f", "k", perm=[0, 2, 3, 1]),
        node("MatMul", "q k", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p q", "a"),
        node("Transpose", "a", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t flat", "y"),
    ]
    constants = {"form": np.array([0, -1, 4, 8]), "flat": np.array([0, -1, WIDTH])}
    return nodes, constants


def test_heads_of_attention(tmp_path):
    nodes, constants = heads()
    check(tmp_path, nodes, (1, "n", WIDTH), constants)


@pytest.mark.parametrize(("count", "read"), [(64, 64), (17, 32)])
def test_keys_are_read_up_to_the_last_vector_that_counts(tmp_path, monkeypatch, count, read):
    """And not by as many more: those of 64 are 64, and those of 17 fill two vectors at most."""
    ends, cut = [], whole.cut

    def noted(*given):
        body = cut(*given)
        for one in collect(body, tirx.LT) if body is not None else ():
            known = structural_map(one.b, (tvm.ir.TensorLoad, lambda _: tirx.const(count, "int64")))
            ends.append(sym.Analyzer().simplify(known))
        return body

    monkeypatch.setattr(whole, "cut", noted)
    nodes, constants = heads()
    library(tmp_path, nodes, (1, "n", WIDTH), constants)
    assert max(int(end) for end in ends if isinstance(end, tirx.IntImm)) <= read


def test_products_end_where_their_epilogue_goes_on_with_zeros(tmp_path, monkeypatch):
    """As where the least and the most of all rows are looked for."""
    products, cut = [], whole.cut

    def noted(body, found, *given):
        made = cut(body, found, *given)
        if any(sums_products(leaf.block.body) for leaf in found):
            products.append(made is not None)
        return made

    monkeypatch.setattr(whole, "cut", noted)
    nodes = [
        node("MatMul", "x w", "h"),
        node("Tanh", "h", "t"),
        node("DynamicQuantizeLinear", "t", "q s z"),
        node("Mul", "x s", "y"),
    ]
    check(tmp_path, nodes, (1, "n", WIDTH), {"w": randn(1, WIDTH, 48)})
    assert products
    assert all(products)


def test_tiles_are_turned_in_registers_whole(tmp_path, monkeypatch):
    tiles, cut = [], whole.cut

    def noted(*given):
        body = cut(*given)
        tiles.extend(one for one in collect(body, tirx.For) if TURNED in (one.annotations or {}))
        return body

    monkeypatch.setattr(whole, "cut", noted)
    check(tmp_path, [node("Conv", "x w", "y")], (1, 256, "n"), {"w": randn(1, 8, 256, 1) / 8})
    assert tiles
    assert all(isinstance(one.body, tirx.For) for one in tiles)


@pytest.mark.parametrize("stride", [1, 2])
def test_steps_of_convolutions(tmp_path, stride):
    nodes = [
        node("Conv", "x w", "c", pads=[2, 2]),
        node("Relu", "c", "r"),
        node("Conv", "r v", "y", strides=[stride]),
    ]
    constants = {"w": randn(1, 16, 8, 5), "v": randn(2, 16, 16, 3)}
    check(tmp_path, nodes, (1, 8, "n"), constants, lengths=(96, 61, 17, 3))


def test_what_is_read_at_many_scales_is_computed_as_far_as_it_counts(tmp_path):
    """Each scale has a number of its own, which is so many times the first."""
    scales = {f"y{k}": np.array([1, 8, 1, k]) for k in (2, 3, 4, 5)}
    nodes = [node("Exp", "x", "e"), node("Relu", "e", "r"), node("Unsqueeze", "r last", "u")]
    for name in scales:
        nodes += [node("Expand", f"u {name}s", f"{name}e"), node("Reshape", f"{name}e rows", name)]
    constants = {f"{name}s": value for name, value in scales.items()}
    constants |= {"last": np.array([3]), "rows": np.array([1, 8, -1])}
    proto = model(nodes, {"x": (1, 8, "n")}, ("r", *scales), constants, opset=18)
    imported = import_model(opened(proto, {"x": (1, 8, Span(1, MOST))}), HOST)
    compile_model(imported, extract(imported.mod, HOST), {}, HOST).export(
        path := tmp_path / "net.so", HOST
    )
    _, (function,), _ = into_functions(path, 1, 1, None)
    made = [np.full(one.shape, 7.0, one.dtype) for one in imported.interfaces[0].outputs]
    x, room = randn(0, 1, 8, 20), np.zeros((1, 8, MOST), np.float32)
    room[:, :, :20] = x
    function([room, np.array(20, np.int64)], made)
    for have, want in zip(made, run(proto, {"x": x}), strict=False):
        np.testing.assert_allclose(have[:, :, : want.shape[2]], want, rtol=1e-5)
    assert (made[0][:, :, 48:] == 7.0).all()


def test_a_mean_over_all_that_counts(tmp_path):
    nodes = [node("ReduceMean", "x axes", "m"), node("Sub", "x m", "y")]
    check(tmp_path, nodes, (1, "n", WIDTH), {"axes": np.array([1])})


def test_a_sum_of_nothing_is_zero(tmp_path):
    """Also where a schedule lets the first step of a sum begin it."""
    nodes = [
        node("NonZero", "x", "at"),
        node("Transpose", "at", "t"),
        node("GatherND", "x t", "found"),
        node("ReduceSum", "found axes", "y"),
    ]
    proto = model(nodes, {"x": (64,)}, constants={"axes": np.array([0])}, opset=18)
    imported = import_model(canonical_graph(proto), HOST)
    tasks = extract(imported.mod, HOST)
    plain = {one.key: Scheduled("as it is written", one.mod["main"]) for one in tasks.values()}
    for schedules in ({}, plain):
        compile_model(imported, tasks, schedules, HOST).export(path := tmp_path / "net.so", HOST)
        _, (function,), _ = into_functions(path, 1, 1, None)
        x, made = np.zeros(64, np.float32), np.full(1, 7.0, np.float32)
        function([x], [made])
        assert made == 0


def check_images(proto, function, sizes, channels=8):
    """The right numbers for images of these sizes, which give half as large ones of 16 channels."""
    for high, wide in sizes:
        x, made = randn(high, 1, channels, high, wide), np.zeros((1, 16, 16, 16), np.float32)
        room = np.full((1, channels, WIDTH, WIDTH), np.nan, np.float32)
        room[:, :, :high, :wide] = x
        counts = [np.zeros((), np.int64) for _ in range(2)]
        function([room, np.array(high, np.int64), np.array(wide, np.int64)], [made, *counts])
        (want,) = run(proto, {"x": x})
        have = made[:, :, : int(counts[0]), : int(counts[1])]
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


def test_images_in_steps_are_not_copied_for_masks(tmp_path, kernels):
    """Their lines are a number of steps, times the lines of a step."""
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "a", "b"),
        node("Conv", "b v", "y", pads=[1, 1, 1, 1]),
    ]
    constants = {"w": randn(1, 8, 3, 3, 3) / 8, "v": randn(2, 16, 8, 3, 3) / 8}
    sizes = dict.fromkeys(("high", "wide"), Span(8, WIDTH, 8))
    proto, _, function = of_spans(tmp_path, nodes, (1, 3, "high", "wide"), constants, sizes)
    check_images(proto, function, ((WIDTH, WIDTH), (16, 24), (WIDTH, 8), (8, 8)), channels=3)
    names, _ = kernels
    assert not any("logical_and_where" in name for name in names)


def test_images_are_dense_and_packed_in_tiles(tmp_path, kernels):
    """Of a pointwise convolution, of strides, and of Winograd's tiles; no kernel copies them."""
    nodes = [
        node("Conv", "x p", "a"),
        node("Relu", "a", "b"),
        node("Conv", "b w", "c", pads=[1, 1, 1, 1]),
        node("Add", "b c", "d"),
        node("Conv", "d v", "y", pads=[1, 1, 1, 1], strides=[2, 2]),
    ]
    shapes = {"p": (32, 8, 1, 1), "w": (32, 32, 3, 3), "v": (16, 32, 3, 3)}
    constants = {name: randn(at, *shape) / 8 for at, (name, shape) in enumerate(shapes.items())}
    sizes = dict.fromkeys(("high", "wide"), Span(1, WIDTH))
    images = (1, 8, "high", "wide")
    proto, _, function = of_spans(tmp_path, nodes, images, constants, sizes)
    check_images(proto, function, ((WIDTH, WIDTH), (17, 30), (5, WIDTH), (WIDTH, 1), (1, 1)))
    names, buffers = kernels
    assert not any(name.startswith(("where", "fused_less")) for name in names)
    assert not any("lines" in made for made in buffers)


def test_columns_of_images_are_packed_where_all_lines_count(tmp_path):
    """Parts of a concatenation are in one order, and zeros behind taps of channels stay."""
    nodes = [
        node("Conv", "x p", "a"),
        node("Relu", "a", "b"),
        node("Conv", "b d", "c", pads=[1, 1, 1, 1], group=32),
        node("Conv", "c q", "e"),
        node("Conv", "a v", "f", pads=[1, 1, 1, 1]),
        node("Concat", "e f", "g", axis=1),
        node("Conv", "g r", "y", strides=[2, 1]),
    ]
    shapes = {"p": (32, 8, 1, 1), "d": (32, 1, 3, 3), "q": (16, 32, 1, 1), "v": (24, 32, 3, 3)}
    shapes["r"] = (16, 40, 1, 1)
    constants = {name: randn(at, *shape) / 8 for at, (name, shape) in enumerate(shapes.items())}
    images = (1, 8, 12, "wide")
    proto, _, function = of_spans(tmp_path, nodes, images, constants, {"wide": Span(1, WIDTH)})
    for wide in (WIDTH, 17, 5, 1):
        x, made = randn(wide, 1, 8, 12, wide), np.zeros((1, 16, 6, WIDTH), np.float32)
        room = np.full((1, 8, 12, WIDTH), np.nan, np.float32)
        room[..., :wide] = x
        function([room, np.array(wide, np.int64)], [made, count := np.zeros((), np.int64)])
        (want,) = run(proto, {"x": x})
        assert count == wide
        np.testing.assert_allclose(made[..., :wide], want, rtol=1e-4, atol=1e-4)


def test_rows_behind_the_last_repeat_it_where_results_lie_apart(tmp_path):
    """Else a tile would store what lies behind dense rows in the place of the last one."""
    nodes = [
        node("Reshape", "x f", "a"),
        node("Transpose", "a", "b", perm=[0, 2, 1, 3]),
        node("Softmax", "b", "c", axis=1),
        node("Conv", "c w", "d"),
        node("Reshape", "d g", "y"),
    ]
    constants = {"f": np.array([1, 4, 16, -1]), "g": np.array([1, 4, -1])}
    constants["w"] = np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)
    check(tmp_path, nodes, (1, 64, "n"), constants, lengths=(96, 77, 17, 1))


def test_results_of_winograds_tiles_are_left_out(tmp_path):
    """What puts them together goes by other numbers than what it puts together."""
    nodes = [
        node("Transpose", "x", "a", perm=[0, 3, 1, 2]),
        node("Conv", "a w", "c", pads=[1, 1, 1, 1]),
        node("Transpose", "c", "y", perm=[0, 2, 3, 1]),
    ]
    shape, sizes = (1, "high", "wide", WIDTH), Span(1, WIDTH)
    weight = {"w": randn(1, WIDTH, WIDTH, 3, 3) / 8}
    proto = model(nodes, {"x": shape}, constants=weight, opset=18)
    imported = import_model(opened(proto, {"x": (1, sizes, sizes, WIDTH)}), HOST)
    compile_model(imported, extract(imported.mod, HOST), {}, HOST).export(
        path := tmp_path / "net.so", HOST
    )
    _, (function,), _ = into_functions(path, 1, 1, None)
    made, room = (np.full((1, WIDTH, WIDTH, WIDTH), 7.0, np.float32) for _ in range(2))
    room[:, :5, :9] = x = randn(2, 1, 5, 9, WIDTH)
    counts = [np.zeros((), np.int64) for _ in range(2)]
    function([room, np.array(5, np.int64), np.array(9, np.int64)], [made, *counts])
    (want,) = run(proto, {"x": x})
    np.testing.assert_allclose(made[:, :5, :9], want, rtol=1e-4, atol=1e-4)
    assert (made[:, 16:] == 7.0).all()
    assert (made[:, :, 16:] == 7.0).all()


def test_rows_that_are_put_in_order_anew_end_as_well(tmp_path, kernels):
    """As scores of relative positions, which are shifted by a reshape."""
    nodes = [
        *(node("Shape", "x", "n", start=1, end=2), node("Concat", "n rest three", "s", axis=0)),
        *(node("Squeeze", "x", "q"), node("Concat", "q q", "b", axis=0)),
        *(node("Slice", "b from far", "c"), node("Unsqueeze", "c second", "e")),
        node("Add", "e q", "p"),
        *(node("Reshape", "p s", "r"), node("ReduceMax", "r second", "y", keepdims=0)),
    ]
    constants = {"rest": [-1], "three": [3], "second": [1], "from": [1], "far": [1 << 40]}
    given = {name: np.int64(value) for name, value in constants.items()}
    check(tmp_path, nodes, (1, "n", 3), given, lengths=(96, 17, 2))
    (shifted,) = {name for name in kernels[0] if name.startswith("repacked")}
    assert shifted.endswith("counted")


def test_a_softmax_along_another_axis(tmp_path):
    """Of channels, where what counts are elements of each."""
    check(tmp_path, [node("Softmax", "x", "y", axis=1)], (1, 16, "n"), {})


def test_kernels_end_with_the_length_where_the_result_is_of_one_size(tmp_path):
    """Of an image, of which all rows are read where the mean does not end with it."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "y"),
    ]
    constants = {"w": randn(1, 8, 8, 3, 3)}
    sizes = dict.fromkeys(("high", "wide"), Span(3, WIDTH))
    images = (1, 8, "high", "wide")
    proto, _, function = of_spans(tmp_path, nodes, images, constants, sizes)
    for high, wide in ((WIDTH, WIDTH), (17, 30), (3, 5)):
        x, made = randn(high, 1, 8, high, wide), np.zeros((1, 8, 1, 1), np.float32)
        room = np.full((1, 8, WIDTH, WIDTH), np.nan, np.float32)
        room[:, :, :high, :wide] = x
        function([room, np.array(high, np.int64), np.array(wide, np.int64)], [made])
        (want,) = run(proto, {"x": x})
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-4)
