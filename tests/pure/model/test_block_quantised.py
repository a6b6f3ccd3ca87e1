"""Weights of few bits in blocks are the numbers that ONNX Runtime takes them for."""

import numpy as np
import pytest
from helpers.graphs import contrib, node, randn, run, typed
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.graph.activations import in_float32
from ansor_deploy.model.operators.four_bits import steps_of, words_of
from ansor_deploy.ship.verify.oracle import Oracle

FLOAT, FLOAT16, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
ROWS, DEPTH = 24, 100


def model(op, given, constants, kind=FLOAT, **attributes):
    """A model of one node, which reads an input and constants: arrays, tensors, or None."""
    words = [name if value is not None else "-" for name, value in constants.items()]
    (name, shape, element), at = given, attributes.pop("at", 0)
    made = contrib(op, " ".join([*words[:at], name, *words[at:]]), "y", **attributes)
    known = {name: value for name, value in constants.items() if value is not None}
    return typed([made], {name: (element, shape)}, {"y": kind}, known, 21)


def bytes_of(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def product(bits, size, zeros=None, kind=FLOAT, bias=None, **attributes):
    blocks = -(-DEPTH // size)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    given = {"packed": np.zeros((ROWS, -(-blocks * bits // 8)), np.uint8),
             "floats": np.zeros((ROWS, blocks), dtype)}  # fmt: skip
    if zeros == "packed":
        given["packed"] = bytes_of(2, *given["packed"].shape)
    if zeros == "floats":
        given["floats"] = (8 + randn(3, ROWS, blocks)).astype(dtype)
    constants = {
        "w": bytes_of(0, ROWS, blocks, size * bits // 8),
        "s": (randn(1, ROWS, blocks) / 16).astype(dtype),
        "z": given.get(zeros),
        "g": attributes.pop("order", None),
        "b": None if bias is None else bias.astype(dtype),
    }
    sizes = {"N": ROWS, "K": DEPTH, "bits": bits, "block_size": size}
    return model("MatMulNBits", ("x", (2, 3, DEPTH), kind), constants, kind, **sizes, **attributes)


@pytest.mark.parametrize("zeros", [None, "packed", "floats"])
@pytest.mark.parametrize(("bits", "size"), [(2, 32), (4, 16), (4, 32), (4, 256), (8, 64)])
def test_a_product_with_weights_of_few_bits(bits, size, zeros):
    if (bits, zeros) == (8, "floats"):
        pytest.skip("ONNX Runtime has none")
    assert_close(product(bits, size, zeros), randn(5, 2, 3, DEPTH))


def test_steps_of_words():
    steps = np.random.default_rng(0).integers(-8, 8, (16, 3), np.int8)
    np.testing.assert_array_equal(steps_of(words_of(steps)), steps)
    assert words_of(steps[:15]) is None
    assert words_of(steps + np.int8(1)) is None


@pytest.mark.parametrize("kind", [FLOAT, FLOAT16])
def test_a_product_with_a_bias_and_its_type(kind):
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    proto = product(4, 32, kind=kind, bias=randn(4, ROWS), accuracy_level=1)
    assert_close(proto, randn(5, 2, 3, DEPTH).astype(dtype), 1e-5 if kind == FLOAT else 3e-3)


def standard(proto):
    """The canonical model, with products of blocks as others of float32."""
    after = canonicalize(proto)
    constants = {one.name: numpy_helper.to_array(one) for one in after.graph.initializer}
    for entry in [entry for entry in after.graph.node if entry.op_type == "BlockProduct"]:
        rows, *weights = entry.input
        steps, scales = (constants[name] for name in weights)
        steps = steps_of(steps) if steps.dtype == np.int32 else steps
        size = entry.attribute[0].i
        weight = numpy_helper.from_array(steps * scales[np.arange(len(steps)) // size], "weight")
        after.graph.initializer.append(weight)
        entry.CopyFrom(node("MatMul", f"{rows} weight", entry.output[0]))
    return after


def assert_close(proto, given, tolerance=1e-5):
    after = standard(proto)
    assert {entry.domain for entry in after.graph.node} == {""}
    feed = {value.name: given for value in proto.graph.input}
    (want,), (have,) = run(proto, feed), run(after, feed)
    assert (have.shape, have.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("columns", [16, 7])
def test_weights_that_four_bits_look_up(kind, columns):
    """Blocks go on over the ends of rows, and the last may be short."""
    count = columns * DEPTH
    scales = (0.1 + np.abs(randn(1, -(-count // 64)))).astype(np.float32)
    known = {"b": bytes_of(0, -(-count // 2)), "s": scales}
    sizes = {"K": DEPTH, "N": columns, "block_size": 64, "quant_type": kind}
    proto = model("MatMulBnb4", ("x", (2, 3, DEPTH), FLOAT), known, **sizes)
    assert_close(proto, randn(5, 2, 3, DEPTH))


def test_onnx_runtime_is_asked_to_round_to_bytes_alone():
    feed = {"x": randn(5, 2, 3, DEPTH)}
    exact, short, rounded = (product(4, 32, accuracy_level=level) for level in (1, 2, 4))
    assert in_float32(short) == exact
    assert in_float32(rounded) == rounded
    wants = [Oracle(proto).outputs(feed)["y"] for proto in (exact, rounded)]
    assert np.abs(wants[0] - wants[1]).max() > 1e-4


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"order": np.arange(DEPTH, dtype=np.int32)}, "g_idx is not supported: quantise it"),
        ({"weight_prepacked": 1}, "packed for a processor"),
        ({"bits": 3}, "numbers of 3 bits are not supported: quantise to 4 or 8"),
    ],
)
def test_other_products_are_refused_in_words(attributes, reason):
    with pytest.raises(ModelError, match=reason):
        canonicalize(product(attributes.pop("bits", 4), 32, **attributes))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_a_table_of_bytes(bits, zeros):
    width, size = 64, 16
    constants = {
        "t": bytes_of(0, 30, width * bits // 8),
        "s": randn(1, 30, width // size),
        "z": bytes_of(2, 30, width // size * bits // 8) if zeros else None,
    }
    proto = model("GatherBlockQuantized", ("i", (2, 3), INT64), constants, at=1, bits=bits,
                  block_size=size, quantize_axis=1)  # fmt: skip
    assert_close(proto, np.array([[0, 29, 5], [-1, 7, 7]]))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize(("gather", "quantize"), [(0, 2), (1, 0), (2, 1)])
def test_rows_of_a_table_of_four_bits(gather, quantize, kind, zeros):
    shape = [5, 6, 7]
    shape[quantize] = 40
    blocks = [3 if at == quantize else size for at, size in enumerate(shape)]
    low = -8 if kind == TensorProto.INT4 else 0
    numbers = np.random.default_rng(0).integers(low, low + 16, shape)
    centres = np.random.default_rng(1).integers(low, low + 16, blocks)
    constants = {
        "t": helper.make_tensor("t", kind, shape, numbers.ravel()),
        "s": randn(1, *blocks),
        "z": helper.make_tensor("z", kind, blocks, centres.ravel()) if zeros else None,
    }
    proto = model("GatherBlockQuantized", ("i", (2, 3), INT64), constants, at=1, block_size=16,
                  gather_axis=gather, quantize_axis=quantize)  # fmt: skip
    assert_close(proto, np.array([[0, 4, 2], [-1, 3, 3]]))


def test_a_model_that_rounds_rows_is_judged_as_one_that_decides():
    exact, rounded = (Oracle(product(4, 32, accuracy_level=level)) for level in (1, 4))
    assert exact.steps is None
    assert rounded.steps == {"y": 0.0}
