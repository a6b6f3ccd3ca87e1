"""A marked reduction keeps partial results in lanes, whatever its length; nothing else changes."""

import numpy as np
import pytest
import tvm
from helpers import built
from tvm import te

from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.marks.partial_lanes import PARTIAL_LANES

LENGTHS = [16, 17, 31, 64, 65, 100, 197]
REDUCERS = {"sum": te.sum, "max": te.max, "min": te.min}
# Each length with each reduction, and with each mark.
REDUCED = [(("sum", "max", "min")[(at + turn) % 3], ("1x16", "4x16", "8x4")[turn], length)
           for at, length in enumerate(LENGTHS) for turn in range(3)]  # fmt: skip


def rows_of(reducer, length: int, dtype: str = "float32") -> tvm.s_tir.Schedule:
    """Five rows reduced, with one term subtracted from all, and each reduction by itself."""
    x, k = te.placeholder((5, length), dtype, name="x"), te.reduce_axis((0, length))
    out = te.compute((5,), lambda i: reducer(x[i, k] - x[i, 0], axis=k), name="out")
    func = te.create_prim_func([x, out]).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(func, debug_mask="none")


def marked(sch: tvm.s_tir.Schedule, mark: str) -> tvm.IRModule:
    block = sch.get_sblock("out")
    _, terms = sch.get_loops(block)
    sch.annotate(terms, PARTIAL_LANES, mark)
    sch.decompose_reduction(block, terms)
    return sch.mod


@pytest.mark.parametrize(("name", "mark", "length"), REDUCED)
def test_it_reduces_rows_of_any_length(name, mark, length):
    mod = marked(rows_of(REDUCERS[name], length), mark)
    assert "T.vectorized(" in _cut_off(mod).script()
    x, out = built.kernel_outputs(mod)
    want = getattr(np, name)(x - x[:, :1], axis=1)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_row_that_was_just_made_is_read_as_it_was_written(length):
    x, k = te.placeholder((5, length), name="x"), te.reduce_axis((0, length))
    twice = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="twice")
    out = te.compute((5,), lambda i: te.sum(twice[i, k], axis=k), name="out")
    func = te.create_prim_func([x, out]).with_attr("global_symbol", "main")
    mod = marked(tvm.s_tir.Schedule(func, debug_mask="none"), "4x16")
    assert "T.Select(" not in _cut_off(mod).script()
    x_value, total = built.kernel_outputs(mod)
    np.testing.assert_allclose(total, 2 * x_value.sum(axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "float64", "int8"])
def test_of_other_types_too(dtype):
    x, out = built.kernel_outputs(marked(rows_of(te.max, 37, dtype), "2x16"))
    np.testing.assert_array_equal(out, (x - x[:, :1]).max(axis=1))


def test_a_row_shorter_than_a_vector_stays_as_it_is():
    script = _cut_off(marked(rows_of(te.sum, 7), "4x16")).script()
    assert "T.vectorized(" not in script


def test_what_is_no_reduction_stays_as_it_is():
    x = te.placeholder((5, 64), name="x")
    out = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="out")
    func = te.create_prim_func([x, out]).with_attr("global_symbol", "main")
    sch = tvm.s_tir.Schedule(func)
    sch.annotate(sch.get_loops(sch.get_sblock("out"))[-1], PARTIAL_LANES, "4x16")
    x_value, doubled = built.kernel_outputs(sch.mod)
    np.testing.assert_array_equal(doubled, x_value * 2)
    assert "T.vectorized(" not in _cut_off(sch.mod).script()


@pytest.mark.parametrize("mark", ["1x8", "1x16", "1x32", "2x8"])
def test_a_row_of_products_of_bytes_is_summed_up_to_its_end(mark):
    """LLVM makes dot products of bytes of a whole one, and forgets all lanes but the first."""
    length = int(mark[0]) * int(mark[2:])
    x, w = (te.placeholder((5, length), kind, name="x") for kind in ("uint8", "int8"))
    k = te.reduce_axis((0, length))
    product = lambda i: x[i, k].astype("int32") * w[i, k].astype("int32")  # noqa: E731
    out = te.compute((5,), lambda i: te.sum(product(i), axis=k), name="out")
    func = te.create_prim_func([x, w, out]).with_attr("global_symbol", "main")
    x_value, w_value, total = built.kernel_outputs(
        marked(tvm.s_tir.Schedule(func, debug_mask="none"), mark)
    )
    np.testing.assert_array_equal(total, (x_value.astype(int) * w_value).sum(axis=1))
