"""Rows of a tensor that was split into a sequence are read from the tensor."""

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node
from helpers.ranges import LONG, check

from ansor_deploy.model.canonicalize import canonicalize


def unbound(axis, **words):
    return [
        node("SplitToSequence", "x", "rows", axis=axis, **words),
        node("SequenceAt", "rows first", "a"),
        node("SequenceAt", "rows last", "b"),
        node("Sub", "a b", "y"),
    ]


PLACES = {"first": np.array(0), "last": np.array(-1)}


@pytest.mark.parametrize("words", [{}, {"keepdims": 0}])
@pytest.mark.parametrize("rows", [1, 3])
def test_no_sequence_is_left(rows, words):
    proto = model(unbound(1, **words), {"x": (2, rows, 4)}, constants=PLACES)
    after = canonicalize(proto)
    assert not [one for one in after.graph.node if "Sequence" in one.op_type]
    assert_same(proto, after)


def test_rows_of_any_length():
    check(unbound(0, keepdims=0), {"x": (2, LONG, 4)}, constants=PLACES)
