"""Weights of blocks are stored as bytes or less, and scales; what is computed differs by no bit."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.built import HOST, compiled, imported
from helpers.few_bits import few_bits_product
from helpers.graphs import node, randn, typed
from helpers.together import Together
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


# Of each model, the form in which its weights are stored, and its input.
MODELS = {
    **{
        f"{kind} for {rows} rows{', turned' * turned}": (
            built(kind, rows, turned=turned),
            "int32" if kind == "int4" and rows <= FEW else "int8",
            (rows, DEPTH),
        )
        for kind in KINDS
        for rows, turned in ((1, False), (3, True), (70, False), (70, True))
    },
    **{
        f"{kind} of {count} scales along {axis}": (
            built_of_lines(kind, count, axis), "int32" if kind == "int4" else "int8", (3, DEPTH)
        )
        for kind, count, axis in (
            ("int8", COLUMNS, 1), ("uint8", 1, 1), ("int8", DEPTH, 0), ("int4", COLUMNS, 1),
            ("uint4", COLUMNS, 1),
        )
    },
    **{
        f"made by a product, {factors} of {scales}": (
            built_of_products(factors, scales), "int8", (3, DEPTH)
        )
        for factors, scales in (
            ("c s", (1, COLUMNS)), ("s c", (COLUMNS,)), ("c s", (DEPTH, 1)), ("c s", ())
        )
    },
    **{
        f"{op} of {window} by {window}": (
            built_of_channels(op, window, stride=stride, count=count), "int8", IMAGE
        )
        for op, window, stride, count in (
            ("Conv", 1, 1, COLUMNS), ("Conv", 3, 2, 1), ("ConvTranspose", 2, 2, COLUMNS)
        )
    },
    **{
        f"{bits} bits of {depth} for {rows} rows": (product(rows, bits, depth), form, (rows, depth))
        for rows, bits, depth, form in (
            (1, 2, 160, "int32"), (1, 4, 160, "int32"), (1, 4, 152, "int32"), (1, 4, 150, "int8"),
            (1, 8, 150, "int8"), (8, 4, 160, "int32"), (9, 4, 160, "int8"),
        )
    },
}  # fmt: skip
# A byte does not hold what these leave of their numbers.
WITH_ZEROS = {
    f"{kind} for {rows} rows beside zeros": (built(kind, rows, zeros=zeros), "int8", (rows, DEPTH))
    for kind, zeros in (("uint8", (0, 100)), ("int8", (100, 120)))
    for rows in (3, 70)
}
PROTOS = {name: proto for name, (proto, *_) in {**MODELS, **WITH_ZEROS}.items()}


def together():
    """All models as they are imported now."""
    shapes = {name: shape for name, (*_, shape) in {**MODELS, **WITH_ZEROS}.items()}
    return Together(PROTOS, {name: {"x": randn(7, *shape)} for name, shape in shapes.items()})


@pytest.fixture(scope="module")
def short():
    return together()


@pytest.fixture(scope="module")
def wide():
    """Types and outputs of the models with weights of float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockwiseWeights, "of", lambda *_: None)
        patch.setattr(block_quantised, "_in_bytes", lambda _: None)
        models = together()
        return {name: (types(proto), models.outputs(name)) for name, proto in PROTOS.items()}


@pytest.mark.parametrize("name", PROTOS)
def test_results_are_those_of_weights_of_float32(name, short, wide):
    _, form, _ = {**MODELS, **WITH_ZEROS}[name]
    zeros = ["float32"] if name in WITH_ZEROS else []
    assert types(PROTOS[name]) == ["float32", *zeros, form]
    found, ((have,), (want,)) = wide[name][0], (short.outputs(name), wide[name][1])
    assert found == ["float32"]
    np.testing.assert_array_equal(have.view(np.int32), want.view(np.int32))


def test_convolutions_by_tiles_have_transformed_weights():
    assert types(built_of_channels("Conv", 3)) == ["float32"]


def test_zero_points_between_steps_leave_them_float32():
    assert types(product(zeros=7)) == ["float32", "int8"]
    assert types(product(zeros=7.5)) == ["float32"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_net_of_such_weights_is_right(kind, short):
    short.assert_like_oracle(f"{kind} for 3 rows, turned")


def test_they_take_a_byte_each_and_their_scales():
    block = compiled(built("int8")).weights.block
    assert len(block) <= 1.3 * DEPTH * COLUMNS * (1 + 4 / BLOCK)  # panels are filled up


def test_those_of_four_bits_take_half_a_byte_for_one_row():
    block = compiled(built("int4", 1)).weights.block
    assert len(block) <= 1.3 * DEPTH * COLUMNS * (1 / 2 + 4 / BLOCK)


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_can_be_measured_elsewhere(kind):
    """Other processes parse the text of a task."""
    for task in extract(imported(built(kind)).mod, HOST).values():
        check_text(task.workload.text, task.mod)
