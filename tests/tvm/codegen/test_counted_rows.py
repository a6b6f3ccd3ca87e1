"""Kernels that read a cache leave out what is added up of rows that do not count."""

import numpy as np
import pytest
import tvm
from tvm.script import tirx as T  # noqa: N812 - as TVMScript is written

from ansor_deploy.codegen.memory.counted_rows import Rows, counting

ROWS, WIDTH, TILE = 96, 8, 4


def weighted(*, begun=True):
    """out = weights @ cache, TILE rows at a time. begun: whether sums begin before the loops."""

    @T.prim_func(private=True, s_tir=True)
    def apart(w: T.Buffer((96,), "float32"), cache: T.Buffer((96, 8), "float32"),
              out: T.Buffer((8,), "float32")):  # fmt: skip
        for c in T.serial(8):
            with T.sblock("init"):
                i = T.axis.spatial(8, c)
                out[i] = T.float32(0)
        for a in T.serial(24):
            for b, c in T.grid(4, 8):
                with T.sblock("update"):
                    j = T.axis.reduce(96, a * 4 + b)
                    i = T.axis.spatial(8, c)
                    out[i] = out[i] + w[j] * cache[j, i]

    @T.prim_func(private=True, s_tir=True)
    def together(w: T.Buffer((96,), "float32"), cache: T.Buffer((96, 8), "float32"),
                 out: T.Buffer((8,), "float32")):  # fmt: skip
        for a, b, c in T.grid(24, 4, 8):
            with T.sblock("update"):
                j = T.axis.reduce(96, a * 4 + b)
                i = T.axis.spatial(8, c)
                with T.init():
                    out[i] = T.float32(0)
                out[i] = out[i] + w[j] * cache[j, i]

    return apart if begun else together


def guarded(func, samples=1, more=1):
    starts = tvm.tirx.decl_buffer([tvm.tirx.const(samples, "int64")], "int64", "at")
    return counting(func, 1, Rows(0, more, None), starts)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 60, 95])
def test_no_row_is_added_beyond_the_tile_of_the_last_that_counts(length):
    func = guarded(weighted()).with_attr("global_symbol", "main")
    run = tvm.compile(tvm.IRModule({"main": func}), "llvm")["main"]
    cache = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
    end = -(-(length + 1) // TILE) * TILE
    cache[end:] = np.nan  # of which nothing may be read
    weights = np.where(np.arange(ROWS) <= length, 1, 0).astype(np.float32)
    given = [tvm.runtime.tensor(one) for one in (np.array([length]), weights, cache)]
    out = tvm.runtime.tensor(np.full(WIDTH, np.nan, np.float32))
    run(*given, out)
    np.testing.assert_allclose(out.numpy(), cache[: length + 1].sum(0), rtol=1e-5, atol=1e-5)


def test_of_several_samples_the_longest_decides():
    text = guarded(weighted(), samples=3, more=2).script()
    assert text.count("T.max(") == 2
    assert "+ T.int64(2)" in text


def test_sums_that_begin_in_the_loops_are_left_as_they_are():
    assert guarded(weighted(begun=False)) is None
