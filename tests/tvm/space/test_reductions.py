"""Few results of long reductions: in vectors, however few elements the last axis has."""

import pytest
from helpers import built
from helpers.programs import PROGRAMS, program
from tvm import te, topi

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.kernels.lowering import flattening
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.rule import shipped_rules


@pytest.mark.parametrize("shape", [(112, 112, 16), (64, 96, 24), (192, 256, 2)])
def test_a_short_axis_is_joined_with_those_around_it(shape):
    x = te.placeholder((1, *shape), name="x")
    mod = program([x], topi.min(x, keepdims=True))
    sch = default_schedule(mod, built.HOST)
    vectors = [*flattening(), tirx.transform.VectorizeLoop()]
    made = tvm.transform.Sequential(vectors)(sch.mod)["main"]
    lanes = {one.ty.dtype.lanes for one in collect(made.body, tirx.Min)}
    assert built.HOST.vector_bytes // 4 in lanes, lanes
    for have, want in zip(built.loop_outputs(sch.mod), built.loop_outputs(mod), strict=True):
        assert (have == want).all()


def test_a_number_that_is_computed_on_is_one_as_well():
    """What follows it has no loops, beside which no reduction can be factored."""
    found = derive(PROGRAMS["mean of all"](), built.HOST, shipped_rules("llvm"))
    assert not found.faults
    (sketch, *_) = found.sketches
    assert "reduction-factorisation" in {step.rule.name for step in sketch.path}


def test_a_matrix_by_a_vector_has_a_register_tile_of_columns_alone():
    x, v, k = te.placeholder((3, 120)), te.placeholder((120,)), te.reduce_axis((0, 120))
    product = te.compute((3,), lambda i: te.sum(x[i, k] * v[k], axis=k))
    mod = program([x, v], topi.nn.relu(product), free=(1,))
    found = derive(mod, built.HOST, shipped_rules("llvm"))
    assert not found.faults
    assert any("register-tile" in {step.rule.name for step in one.path} for one in found.sketches)
