"""A transpose whose tensor has its first axes as one meanwhile is a transpose alone."""

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize


def after(shape, merged, perm, split):
    nodes = [node("Reshape", "x merged", "m"), node("Transpose", "m", "t", perm=perm),
             node("Reshape", "t split", "k"), node("Softmax", "k", "y")]  # fmt: skip
    constants = {"merged": np.array(merged), "split": np.array(split)}
    proto = model(nodes, {"x": shape}, constants=constants)
    found = canonicalize(proto)
    assert_same(proto, found)
    return ops(found)


@pytest.mark.parametrize(
    ("shape", "merged", "perm", "split"),
    [
        ((2, 3, 4, 5), (6, 4, 5), [0, 2, 1], (2, 3, 5, 4)),
        ((2, 3, 4, 5), (-1, 4, 5), [0, 2, 1], (2, -1, 5, 4)),
        ((2, 3, 4, 5, 6), (6, 4, 5, 6), [0, 3, 1, 2], (2, 3, 6, 4, 5)),
    ],
)
def test_only_the_transpose_is_left(shape, merged, perm, split):
    assert after(shape, merged, perm, split) == ["Transpose", "Softmax"]


@pytest.mark.parametrize(
    ("merged", "perm", "split"),
    [
        ((6, 4, 5), [0, 2, 1], (3, 2, 5, 4)),
        ((6, 4, 5), [0, 2, 1], (2, 3, 4, 5)),
        ((6, 4, 5), [1, 0, 2], (4, 2, 3, 5)),
        ((2, 12, 5), [0, 2, 1], (2, 5, 3, 4)),
    ],
)
def test_reshapes_that_do_more_are_kept(merged, perm, split):
    assert after((2, 3, 4, 5), merged, perm, split).count("Reshape") == 2
