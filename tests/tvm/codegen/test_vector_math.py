"""Functions on vectors beside the C library's, over all of float32, and in whole models."""

import math

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node

from ansor_deploy.codegen.vector_math import ERF_ONE, TANH_ONE

ULP, LEAST = 2.0**-23, 2.0**-125
# Every 2^13th float32, both signs, NaN and infinities among them; and where branches lie.
EVERY = np.arange(0, 1 << 32, 1 << 13, dtype=np.uint64).astype(np.uint32).view(np.float32)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 88.72283, 88.73, -86.9, -87.4, -104.0, 1e-40]
NEAR = [TANH_ONE, ERF_ONE, math.sqrt(0.5), math.sqrt(2), 2.0**-126]
DENSE = np.linspace(-12, 12, 1 << 16, dtype=np.float32)
INPUTS = np.concatenate([EVERY, np.float32(EDGES), np.float32(NEAR), -np.float32(NEAR), DENSE])

REFERENCES = {
    "Exp": np.exp,
    "Log": np.log,
    "Tanh": np.tanh,
    "Erf": np.vectorize(math.erf),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.fixture(scope="module")
def results():
    """The functions' results on INPUTS, all from one model."""
    nodes = [node(op, "x", op) for op in REFERENCES]
    proto = model(nodes, {"x": INPUTS.shape}, outputs=list(REFERENCES))
    return dict(zip(REFERENCES, built.run(proto, {"x": INPUTS}), strict=True))


@pytest.mark.parametrize("op", REFERENCES)
def test_it_is_right_to_a_few_units_in_the_last_place(results, op):
    with np.errstate(all="ignore"):
        exact = REFERENCES[op](INPUTS.astype(np.float64))
        rounded = exact.astype(np.float32)
        have = results[op].astype(np.float64)
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(have[~finite], rounded[~finite])
        error = np.abs(have - exact)[finite]
    # What would be no normal number may be 0.
    assert (error <= 4 * ULP * np.abs(exact[finite]) + LEAST).all()


def test_what_tends_to_one_stays_below(results):
    for op in ("Tanh", "Erf", "Sigmoid"):
        assert np.nanmax(np.abs(results[op])) == 1
