"""What judges others adds up many numbers in float64, and few as it did."""

import numpy as np
import pytest
from helpers.graphs import contrib, model, node, run

from ansor_deploy.model.operators.wide_sums import with_wide_sums

_EPSILON = np.finfo(np.float32).eps
_ONES, _ZEROS = np.ones(2, np.float32), np.zeros(2, np.float32)
_LONG = (1, 2, 3 << 17)


def _of(operator, *constants, opset=17, shape=_LONG, **words):
    names = [f"c{at}" for at in range(len(constants))]
    made = node(operator, " ".join(["x", *names]), "y", **words)
    given = dict(zip(names, constants, strict=True))
    return model([made], {"x": shape}, constants=given, opset=opset)


def _normal(x):
    apart = x - x.mean(2, keepdims=True)
    return apart / np.sqrt((apart**2).mean(2, keepdims=True) + 1e-5)


_LENGTH = np.array([2], np.int64)
CASES = {
    "image": (_of("GlobalAveragePool"), lambda x: x.mean(2, keepdims=True)),
    "instance": (_of("InstanceNormalization", _ONES, _ZEROS), _normal),
    "row": (_of("LayerNormalization", np.ones(_LONG[2], np.float32)), _normal),
    "length": (_of("ReduceL2", axes=[2]), lambda x: np.sqrt((x * x).sum(2, keepdims=True))),
    "mean": (_of("ReduceMean", axes=[2]), lambda x: x.mean(2, keepdims=True)),
    "sum": (_of("ReduceSum", _LENGTH, keepdims=0), lambda x: x.sum(2)),
    "squares": (_of("ReduceSumSquare", _LENGTH, opset=18), lambda x: (x * x).sum(2, keepdims=True)),
}


@pytest.mark.parametrize("name", CASES)
def test_many_numbers_are_added_up_to_the_last_digits(name):
    proto, exact = CASES[name]
    x = np.random.default_rng(0).chisquare(3, _LONG).astype(np.float32)
    expected = exact(x.astype(np.float64))
    size = np.abs(expected).max()
    off = [abs(run(one, {"x": x})[0] - expected).max() for one in (with_wide_sums(proto), proto)]
    assert off[0] < 2 * _EPSILON * size < off[1]


def test_a_model_of_short_sums_stays_itself():
    proto = _of("GlobalAveragePool", shape=(1, 2, 64))
    assert with_wide_sums(proto) is proto


def test_transforms_are_right_to_the_last_digits():
    proto = model([node("DFT", "x", "y", axis=1)], {"x": (1, 321, 1)}, opset=17)
    x = np.random.default_rng(0).standard_normal((1, 321, 1)).astype(np.float32)
    waves = np.fft.fft(x[..., 0].astype(np.float64), axis=1)
    expected = np.stack([waves.real, waves.imag], -1)
    size = np.abs(expected).max()
    off = [abs(run(one, {"x": x})[0] - expected).max() for one in (with_wide_sums(proto), proto)]
    assert off[0] < 2 * _EPSILON * size < off[1]


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_are_those_of_the_differences(metric):
    """Of rows near each other, far from zero, and of an infinity, which is not NaN."""
    rng = np.random.default_rng(0)
    feed = {"x": 9 + 0.01 * rng.random((3, 4)), "c": 9 + 0.01 * rng.random((2, 4))}
    feed = {name: rows.astype(np.float32) for name, rows in feed.items()}
    feed["x"][0, 0] = np.inf
    proto = model([contrib("CDist", "x c", "y", metric=metric)], {"x": (3, 4), "c": (2, 4)})
    apart = feed["x"][:, None].astype(np.float64) - feed["c"][None]
    expected = np.linalg.norm(apart, axis=2) ** (1 if metric == "euclidean" else 2)
    np.testing.assert_allclose(run(with_wide_sums(proto), feed)[0], expected, rtol=1e-6)
