"""A softmax of numbers that stand for bytes reads the bytes; of all others, the numbers."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node
from helpers.together import Together

from ansor_deploy.model.relax.extract import extract

STEP, WEIGHT = np.float32(0.05), np.float32(1 / 255)


def quantised(shape, kind, axis=-1, opset=17):
    """A softmax between conversions of bytes. kind: of the first."""
    nodes = [
        node("QuantizeLinear", "x step zero", "q"),
        node("DequantizeLinear", "q step zero", "d"),
        node("Softmax", "d", "p", axis=axis),
        node("QuantizeLinear", "p weight none", "w"),
        node("DequantizeLinear", "w weight none", "y"),
    ]
    zeros = {"zero": np.array(122 if kind == "uint8" else -6, kind), "none": np.uint8(0)}
    constants = {"step": STEP, "weight": WEIGHT, **zeros}
    return model(nodes, {"x": shape}, constants=constants, opset=opset)


def reads_bytes(proto):
    """Whether the kernel that computes a softmax reads bytes."""
    tasks = extract(built.imported(proto).mod, built.HOST).values()
    (func,) = [one.mod["main"] for one in tasks if "softmax" in one.name]
    return str(func.params[0].dtype) in ("uint8", "int8")


SHAPES = [(2, 3, 49, 49), (2, 7, 197), (5, 50), (3, 1)]


@pytest.fixture(scope="module")
def softmaxes():
    models = {(one, kind): quantised(one, kind) for one in SHAPES for kind in ("uint8", "int8")}
    rng = np.random.default_rng(0)
    feeds = {at: {"x": rng.standard_normal(at[0]).astype(np.float32) * 4} for at in models}
    return Together(models, feeds)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_the_nearest_steps(shape, kind, softmaxes):
    x = softmaxes.feeds[shape, kind]["x"]
    (have,) = softmaxes.outputs((shape, kind))
    powers = np.exp(np.clip(np.rint(x / STEP), -122, 133) * float(STEP))
    exact = powers / powers.sum(axis=-1, keepdims=True)
    assert np.abs(have - exact).max() <= (0.5 + 1e-4) * WEIGHT
    assert reads_bytes(quantised(shape, kind))


def test_the_greatest_distance_leaves_nothing():
    x = np.full((2, 40), -100, np.float32)
    x[:, 7] = 100
    (have,) = built.run(quantised(x.shape, "uint8"), {"x": x})
    np.testing.assert_array_equal(have.argmax(axis=1), 7)
    np.testing.assert_allclose(have.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(("axis", "opset"), [(1, 17), (0, 17), (1, 12)])
def test_along_other_axes_numbers_are_read(axis, opset):
    proto = quantised((3, 8, 24), "uint8", axis, opset)
    assert not reads_bytes(proto)
    built.assert_like_oracle(proto)
