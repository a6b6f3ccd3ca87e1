"""Lanes of a vector that need memory of their own get it, since the vector is a loop then."""

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.programs import PROGRAMS

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.passes.shared_lanes import shared_lanes


def vector_of_rows(name: str) -> tvm.IRModule:
    """A program whose first loop is one vector, with all that its stages keep for themselves."""
    sch = tvm.s_tir.Schedule(PROGRAMS[name]())
    first, *_ = sch.get_child_blocks(sch.get_sblock("root"))
    sch.vectorize(sch.get_loops(first)[0])
    return sch.mod


def test_a_row_has_its_own_largest_element():
    x, have = built.loop_outputs(vector_of_rows("argmax of row"))
    np.testing.assert_array_equal(have, x.argmax(axis=1))


@pytest.mark.parametrize(("name", "kind"), [("argmax of row", "SERIAL"), ("add", "VECTORIZED")])
def test_what_shares_nothing_stays_a_vector(name, kind):
    outer = collect(shared_lanes(vector_of_rows(name))["main"].body, tirx.For)
    assert getattr(tirx.ForKind, kind) in {loop.kind for loop in outer}
    assert (tirx.ForKind.VECTORIZED in {loop.kind for loop in outer}) == (kind == "VECTORIZED")
