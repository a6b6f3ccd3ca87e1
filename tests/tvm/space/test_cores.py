"""Each core gets whole rows of an image: rows that another core has made come slowly."""

from dataclasses import replace
from itertools import pairwise

import pytest
import tvm
from helpers import programs
from helpers.built import with_vectors

from ansor_deploy._tvm import at_step, collect, structural_map, tirx
from ansor_deploy.codegen.kernels.lowering import _cut_off, flattening
from ansor_deploy.space.default_schedule import default_module

ROWS, PANELS = 128, 20  # tiles of four rows by 24 columns


def stored(func: tvm.tirx.PrimFunc, task: int) -> list[int]:
    """The flat indices of the result at which the vectors of a task begin, all loops' first."""
    (loop,) = (one for one in collect(func.body, tirx.For) if one.kind == tirx.ForKind.PARALLEL)
    alone = tvm.IRModule({"main": func.with_body(at_step(loop.body, loop, task))})
    body = tvm.s_tir.transform.StmtSimplify()(alone)["main"].body
    first = structural_map(body, (tirx.For, lambda inner: at_step(inner.body, inner, 0)))
    result = func.params[-1]
    stores = [one for one in collect(first, tirx.BufferStore) if one.buffer.name == result.name]
    return [int(tvm.sym.Analyzer().simplify(store.indices[0])) for store in stores]


@pytest.mark.parametrize("cores", [2, 4])
@pytest.mark.parametrize(
    "mod",
    [
        programs.depthwise(16, 88),
        programs.conv2d(16, 24, 88, 1, 1, 0),
        programs.conv2d(16, 24, 96, 1, 1, 0),
    ],
    ids=["depthwise", "to 88 channels", "to 96 channels"],
)
def test_each_core_has_rows_of_its_own(mod, cores):
    target = replace(with_vectors(32), cores=cores)
    lowered = [_cut_off, *flattening()]
    func = tvm.transform.Sequential(lowered)(default_module(mod, target))["main"]
    (loop,) = (one for one in collect(func.body, tirx.For) if one.kind == tirx.ForKind.PARALLEL)
    count = int(loop.extent)
    places = [stored(func, task) for task in range(count)]
    shares = [places[at * count // cores : (at + 1) * count // cores] for at in range(cores)]
    for before, after in pairwise(shares):
        assert max(map(min, before)) < min(map(min, after))


@pytest.mark.parametrize(("depth", "tasks"), [(64, ROWS), (768, PANELS)], ids=["small", "large"])
def test_large_panels_are_outermost_where_tiles_do_not_divide(depth, tasks):
    """Each tile of rows would read them from beyond the second cache."""
    target = replace(with_vectors(32), cores=2, l2_bytes=1 << 20)
    func = default_module(programs.matmul(4 * ROWS - 3, depth, 24 * PANELS), target)["main"]
    (loop,) = (one for one in collect(func.body, tirx.For) if one.kind == tirx.ForKind.PARALLEL)
    assert int(loop.extent) == tasks
