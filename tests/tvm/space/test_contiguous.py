"""Rows that fill no vectors are joined where all tensors of a stage are contiguous along them."""

from dataclasses import replace

import pytest
from helpers import built
from helpers.programs import program
from tvm import te

from ansor_deploy._tvm import tvm
from ansor_deploy.space.block_view import BlockView
from ansor_deploy.space.contiguous import contiguous_axes
from ansor_deploy.space.loops import parallel_map

TARGET = replace(built.with_vectors(32, 16), cores=1)
SHAPE = (2, 6, 5, 24)


def stage(kind: str, element, shape=SHAPE):
    """A schedule of one stage. element: of x, which has that shape and kind, and of t."""
    x, t = te.placeholder(shape, kind, name="x"), te.placeholder((256,), "float32", name="t")
    y = te.compute(shape, lambda *at: element(x, t, at), name="y")
    return tvm.s_tir.Schedule(program([x, t], y), debug_mask="none")


@pytest.mark.parametrize(
    ("element", "axes"),
    [
        (lambda x, t, at: x(*at) * x(*at), 4),
        (lambda x, t, at: t(x(*at).astype("int32")), 4),  # a table is read anywhere
        (lambda x, t, at: x(*at) * t(0), 4),
        (lambda x, t, at: x(*at) * t(at[-1]), 1),
        (lambda x, t, at: x(at[0], at[1], 4 - at[2], at[3]), 1),
        (lambda x, t, at: x(1 - at[0], *at[1:]), 3),
        (lambda x, t, at: x(at[0], at[1], at[2], at[3] // 8 * 8 + (7 - at[3] % 8)), 1),
        (lambda x, t, at: te.if_then_else(at[1] < 3, x(*at), 0.0), 1),
    ],
)
def test_axes_are_contiguous_where_each_tensor_is_read_from_end_to_end(element, axes):
    sch = stage("float32", element)
    assert contiguous_axes(BlockView(sch, sch.get_sblock("y"))) == axes


@pytest.mark.parametrize(
    ("shape", "extents"),
    [
        ((2, 6, 5, 32), [2 * 6 * 5, 4, 8]),  # rows are whole vectors
        ((2, 6, 5, 12), [2 * 6 * 5 * 12 // 8, 8]),  # only all rows together are
        ((8, 6, 10, 12), [8 * 6, 15, 8]),  # two axes together are
    ],
)
def test_as_many_rows_are_joined_as_fill_whole_vectors(shape, extents):
    sch = stage("float32", lambda x, t, at: x(*at) * 2.0, shape)
    parallel_map(sch, sch.get_sblock("y"), TARGET)
    loops = sch.get_loops("y")
    assert [int(sch.get(loop).extent) for loop in loops] == extents
