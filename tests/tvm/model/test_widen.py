"""Convolutions whose channels are no whole vectors: computed wider, and cropped where it shows."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node, randn
from helpers.together import Together

from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.widen import whole_vectors

CHANNELS, WIDE = 100, 104  # on vectors of 8 lanes; on others it is wider still
CONV = node("Conv", "x w b", "c", pads=[1] * 4)
MODELS = {
    "relu and mean": [node("Relu", "c", "r"), node("GlobalAveragePool", "r", "y")],
    "the result itself": [node("Identity", "c", "y")],
    "pooling and softmax": [
        node("MaxPool", "c", "p", kernel_shape=[2, 2]),
        node("Softmax", "p", "y", axis=1),
    ],
    "clip": [node("Clip", "c low high", "d"), node("ReduceMean", "d", "y", axes=[2, 3])],
    "clip of a mean": [
        node("Clip", "c low high", "d"),
        node("GlobalAveragePool", "d", "e"),
        node("HardSwish", "e", "y"),
    ],
    "division by zeros of the surplus": [node("Div", "c v", "d"), node("Sigmoid", "d", "y")],
    "both, with and without": [
        node("Relu", "c", "r"),
        node("Add", "c r", "s"),
        node("ReduceSum", "s channels", "y"),
    ],
    "another convolution": [node("Relu", "c", "r"), node("Conv", "r k", "y")],
}
CONSTANTS = {
    "w": randn(1, CHANNELS, 8, 3, 3),
    "b": randn(2, CHANNELS),
    "low": randn(3)[()] * 0 - 1,
    "high": randn(3)[()] * 0 + 1,
    "v": abs(randn(4, 1, CHANNELS, 1, 1)) + 1,
    "k": randn(5, CHANNELS, CHANNELS, 1, 1),
}


def proto(name):
    nodes = [CONV, *MODELS[name]]
    read = {word for one in nodes for word in one.input}
    constants = {key: value for key, value in CONSTANTS.items() if key in read}
    if "channels" in read:
        constants["channels"] = np.array([1])
    return model(nodes, {"x": (1, 8, 6, 5)}, constants=constants)


@pytest.fixture(scope="module")
def models():
    return Together({name: proto(name) for name in MODELS})


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_are_onnx_runtime_s(name, models):
    models.assert_like_oracle(name)


def test_element_by_element_the_surplus_is_carried_along():
    calls = built.count_ops(proto("relu and mean"))
    assert sum("conv2d" in name for name in calls) == 1
    tasks = extract(built.imported(proto("relu and mean")).mod, built.HOST).values()
    (conv,) = {task for task in tasks if "conv2d" in task.name}
    assert conv.workload.shapes[-1][-1] >= WIDE


@pytest.mark.parametrize(
    ("channels", "lanes", "wide"),
    [
        (1000, 16, 1008),
        (1000, 8, 1000),
        (1000, 4, 1000),
        (58, 4, 60),
        (24, 16, 24),  # two vectors for three half ones: not worth the crop
        (64, 16, 64),
        (1, 8, 1),
        (3, 16, 16),  # one vector for three numbers
    ],
)
def test_what_saves_too_little_stays_as_it_is(channels, lanes, wide):
    assert whole_vectors(channels, lanes) == wide
