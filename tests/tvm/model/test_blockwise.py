"""Weights of blocks are stored as bytes or less, and scales; what is computed differs by no bit."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.built import HOST, assert_like_oracle, compiled, imported, run
from helpers.few_bits import few_bits_product
from helpers.graphs import node, randn, typed
from onnx import TensorProto, helper

from ansor_deploy._tvm import collect, tvm
from ansor_deploy.model.operators import block_quantised
from ansor_deploy.model.operators.four_bits import FEW
from ansor_deploy.model.relax.blockwise import BlockwiseWeights
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.canonical_text import check_text

DEPTH, COLUMNS, BLOCK = 160, 100, 32
IMAGE = (1, DEPTH, 9, 9)
# Types of weights, their numbers and zero points.
KINDS = {
    "int8": (TensorProto.INT8, (-128, 128), None),
    "uint8": (TensorProto.UINT8, (0, 256), (128, 129)),
    "int4": (TensorProto.INT4, (-8, 8), None),
    "uint4": (TensorProto.UINT4, (0, 16), (0, 16)),
}


def built(kind: str, rows: int = 3, *, turned: bool = False, zeros=None):
    """A product with a weight of blocks along its reducing axis."""
    made, numbers, given = KINDS[kind]
    rng = np.random.default_rng(0)
    shape, scales = (DEPTH, COLUMNS), (-(-DEPTH // BLOCK), COLUMNS)
    tensors = {"q": (shape, rng.integers(*numbers, shape))}
    if zeros or given:
        tensors["z"] = (scales, rng.integers(*(zeros or given), scales))
    factors = (0.01 + np.abs(randn(1, *scales))).astype(np.float32)
    if turned:
        tensors = {name: (size[::-1], values.T) for name, (size, values) in tensors.items()}
        factors = factors.T.copy()
    nodes = [
        node("DequantizeLinear", f"q s {'z' if 'z' in tensors else ''}", "w", axis=int(turned)),
        node("Gemm", "x w", "y", transB=int(turned)),
    ]
    nodes[0].attribute.append(helper.make_attribute("block_size", BLOCK))
    constants = {
        n: helper.make_tensor(n, made, size, v.flatten()) for n, (size, v) in tensors.items()
    }
    ends = ({"x": ("float32", (rows, DEPTH))}, {"y": ("float32", (rows, COLUMNS))})
    return typed(nodes, *ends, {"s": factors, **constants}, 21)


def product(rows: int = 1, bits: int = 4, depth: int = DEPTH, zeros=None):
    """A MatMulNBits. zeros: the zero point of all blocks, a float."""
    blocks = (COLUMNS, -(-depth // BLOCK))
    points = None if zeros is None else np.full(blocks, zeros, np.float32)
    return few_bits_product(rows, bits, BLOCK, depth, COLUMNS, points)


def built_of_lines(kind: str, count: int, axis: int = 1):
    """A product with a weight of one scale for each of its columns, or rows, or for all."""
    made, numbers, zeros = KINDS[kind]
    rng, shape = np.random.default_rng(0), (DEPTH, COLUMNS)
    size = (count,) if count > 1 else ()
    given = {"q": (shape, rng.integers(*numbers, shape))}
    given["z"] = size, rng.integers(*(zeros or (0, 1)), size)
    constants = {
        name: helper.make_tensor(name, made, *(one[0], np.ravel(one[1])))
        for name, one in given.items()
    }
    constants["s"] = (0.01 + np.abs(randn(1, *size))).astype(np.float32)
    nodes = [node("DequantizeLinear", "q s z", "w", axis=axis), node("MatMul", "x w", "y")]
    ends = ({"x": ("float32", (3, DEPTH))}, {"y": ("float32", (3, COLUMNS))})
    return typed(nodes, *ends, constants, 21)


def built_of_channels(op: str, window: int, *, stride: int = 1, count: int = COLUMNS):
    """A convolution with a weight of one scale for each of its channels, or for all."""
    size, turned = (count,) if count > 1 else (), op == "ConvTranspose"
    filters = (DEPTH, COLUMNS) if turned else (COLUMNS, DEPTH)
    steps = np.random.default_rng(0).integers(-128, 128, (*filters, window, window))
    constants = {
        "q": helper.make_tensor("q", TensorProto.INT8, steps.shape, steps.flatten()),
        "s": (0.01 + np.abs(randn(1, *size))).astype(np.float32),
    }
    nodes = [node("DequantizeLinear", "q s", "w", axis=int(turned)),
             node(op, "x w", "y", strides=[stride, stride])]  # fmt: skip
    ends = ({"x": ("float32", IMAGE)}, {"y": ("float32", None)})
    return typed(nodes, *ends, constants, 21)


def built_of_products(factors: str, scales: tuple[int, ...]):
    """A product with a weight that a Cast and a Mul make of bytes."""
    q = np.random.default_rng(0).integers(-128, 128, (DEPTH, COLUMNS)).astype(np.int8)
    constants = {"q": q, "s": (0.01 + np.abs(randn(1, *scales))).astype(np.float32)}
    nodes = [node("Cast", "q", "c", to=TensorProto.FLOAT), node("Mul", factors, "w"),
             node("MatMul", "x w", "y")]  # fmt: skip
    ends = ({"x": ("float32", (3, DEPTH))}, {"y": ("float32", (3, COLUMNS))})
    return typed(nodes, *ends, constants)


def types(proto) -> list[str]:
    """Of the constants that kernels take."""
    constants = collect(imported(proto).mod["main"], tvm.ir.GenericConst)
    return sorted(str(one.ty.dtype) for one in constants if len(one.ty.shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "turned"), [(1, False), (3, True), (70, False), (70, True)])
def test_results_are_those_of_weights_of_float32(kind, rows, turned, monkeypatch):
    form = "int32" if kind == "int4" and rows <= FEW else "int8"
    assert_same_bits(built(kind, rows, turned=turned), randn(7, rows, DEPTH), form, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "count", "axis"),
    [
        ("int8", COLUMNS, 1),
        ("uint8", 1, 1),
        ("int8", DEPTH, 0),
        ("int4", COLUMNS, 1),
        ("uint4", COLUMNS, 1),
    ],
)
def test_so_they_are_of_one_scale_a_line(kind, count, axis, monkeypatch):
    form = "int32" if kind == "int4" else "int8"
    assert_same_bits(built_of_lines(kind, count, axis), randn(7, 3, DEPTH), form, monkeypatch)


@pytest.mark.parametrize(
    ("factors", "scales"),
    [("c s", (1, COLUMNS)), ("s c", (COLUMNS,)), ("c s", (DEPTH, 1)), ("c s", ())],
)
def test_nor_do_those_differ_that_a_product_makes_of_bytes(factors, scales, monkeypatch):
    proto = built_of_products(factors, scales)
    assert_same_bits(proto, randn(7, 3, DEPTH), "int8", monkeypatch)


@pytest.mark.parametrize(
    ("op", "window", "stride", "count"),
    [("Conv", 1, 1, COLUMNS), ("Conv", 3, 2, 1), ("ConvTranspose", 2, 2, COLUMNS)],
)
def test_and_those_of_convolutions_are(op, window, stride, count, monkeypatch):
    proto = built_of_channels(op, window, stride=stride, count=count)
    assert_same_bits(proto, randn(7, *IMAGE), "int8", monkeypatch)


def test_convolutions_by_tiles_have_transformed_weights():
    assert types(built_of_channels("Conv", 3)) == ["float32"]


@pytest.mark.parametrize(
    ("rows", "bits", "depth", "form"),
    [
        (1, 2, 160, "int32"),
        (1, 4, 160, "int32"),
        (1, 4, 152, "int32"),
        (1, 4, 150, "int8"),
        (1, 8, 150, "int8"),
        (8, 4, 160, "int32"),
        (9, 4, 160, "int8"),
    ],
)
def test_results_of_products_of_few_bits_are_so_too(rows, bits, depth, form, monkeypatch):
    assert_same_bits(product(rows, bits, depth), randn(7, rows, depth), form, monkeypatch)


def test_zero_points_between_steps_leave_them_float32():
    assert types(product(zeros=7)) == ["float32", "int8"]
    assert types(product(zeros=7.5)) == ["float32"]


def assert_same_bits(proto, x, form, monkeypatch, *, zeros=False):
    feeds = {"x": x}
    assert types(proto) == ["float32", *(["float32"] if zeros else []), form]
    (short,) = run(proto, feeds)
    monkeypatch.setattr(BlockwiseWeights, "of", lambda *_: None)
    monkeypatch.setattr(block_quantised, "_in_bytes", lambda _: None)
    assert types(proto) == ["float32"]
    (wide,) = run(proto, feeds)
    np.testing.assert_array_equal(short.view(np.int32), wide.view(np.int32))


@pytest.mark.parametrize("kind", KINDS)
def test_a_net_of_such_weights_is_right(kind):
    assert_like_oracle(built(kind))


def test_they_take_a_byte_each_and_their_scales():
    block = compiled(built("int8")).weights.block
    assert len(block) <= 1.3 * DEPTH * COLUMNS * (1 + 4 / BLOCK)  # panels are filled up


def test_those_of_four_bits_take_half_a_byte_for_one_row():
    block = compiled(built("int4", 1)).weights.block
    assert len(block) <= 1.3 * DEPTH * COLUMNS * (1 / 2 + 4 / BLOCK)


@pytest.mark.parametrize("rows", [3, 70])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_zero_points_are_kept_where_a_byte_does_not_hold_what_they_leave(kind, rows, monkeypatch):
    proto = built(kind, rows, zeros=(100, 120) if kind == "int8" else (0, 100))
    assert_same_bits(proto, randn(7, rows, DEPTH), "int8", monkeypatch, zeros=True)


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_can_be_measured_elsewhere(kind):
    """Other processes parse the text of a task."""
    for task in extract(imported(built(kind)).mod, HOST).values():
        check_text(task.workload.text, task.mod)
