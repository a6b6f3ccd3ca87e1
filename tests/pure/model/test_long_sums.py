"""Sums and means of many rows are added up in parts, which are not parted again."""

import pytest
from helpers.graphs import assert_same, model, node

from ansor_deploy.model.canonicalize import canonicalize


@pytest.mark.parametrize("shape", [(1, 1024, 3), (2, 3072, 1), (1, 1 << 20, 1)])
def test_rows_are_added_up_in_parts(shape):
    proto = model([node("ReduceMean", "x", "y", axes=[1])], {"x": shape})
    after = canonicalize(proto)
    assert len([one for one in after.graph.node if one.op_type == "ReduceMean"]) > 1
    assert_same(proto, after, 1e-5)


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceSumSquare"])
def test_squares_are_added_up_in_parts(op):
    proto = model([node(op, "x", "y", axes=[1], keepdims=0)], {"x": (1, 4096, 3)}, opset=13)
    after = canonicalize(proto)
    assert len([one for one in after.graph.node if one.op_type == "ReduceSum"]) > 1
    assert_same(proto, after, 1e-4)
