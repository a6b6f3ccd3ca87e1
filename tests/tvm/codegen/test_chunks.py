"""Each thread begins with its even part of a parallel loop's tasks, and no task is lost."""

import operator
from dataclasses import replace

import numpy as np
import pytest
import tvm
from helpers import graphs
from helpers.built import HOST, compiled, main_of
from tvm import te

from ansor_deploy._tvm import collect, tirx, tvm_target
from ansor_deploy.codegen.passes.chunks import CHUNKS, chunks
from ansor_deploy.codegen.thread_pool import SOURCE


def cut(tasks, cores):
    """The loops of a program of so many tasks, the inner one first."""
    given = te.placeholder((tasks, 4), name="given")
    twice = te.compute((tasks, 4), lambda i, j: given[i, j] * 2, name="twice")
    sch = tvm.s_tir.Schedule(te.create_prim_func([given, twice]))
    sch.parallel(sch.get_loops(sch.get_sblock("twice"))[0])
    func = sch.mod["main"].with_attr("target", tvm_target(replace(HOST, cores=cores)))
    return collect(chunks(tvm.IRModule({"main": func}))["main"].body, tirx.For)


OPERATORS = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.FloorDiv: operator.floordiv,
}


def value(expr, chunk):
    """A number, given the chunk's."""
    if isinstance(expr, tirx.Var):
        return chunk
    if isinstance(expr, tirx.IntImm):
        return int(expr)
    return OPERATORS[type(expr)](value(expr.a, chunk), value(expr.b, chunk))


@pytest.mark.parametrize("cores", [2, 3])
@pytest.mark.parametrize("tasks", [1, 7, 33, 49, 1000])
def test_chunks_are_even_and_have_every_task_once(tasks, cores):
    _, within, over = cut(tasks, cores)
    count = int(over.extent)
    assert (over.kind, count) == (tirx.ForKind.PARALLEL, CHUNKS * cores)
    found = [(value(within.min, at), value(within.extent, at)) for at in range(count)]
    assert [task for first, many in found for task in range(first, first + many)] == [*range(tasks)]
    shares = [sum(many for _, many in found[at : at + CHUNKS]) for at in range(0, count, CHUNKS)]
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(("tasks", "cores"), [(64, 2), (49, 1)])
def test_what_is_even_already_or_for_one_core_stays(tasks, cores):
    (_, loop) = cut(tasks, cores)
    assert int(loop.extent) == tasks


def test_the_pool_makes_as_many():
    assert f"CHUNKS = {CHUNKS}," in SOURCE.read_text()


def test_a_model_for_two_cores_computes_the_same():
    proto = graphs.model([graphs.node("Softmax", "x", "y")], {"x": (777, 500)})
    main = main_of(compiled(proto, replace(HOST, cores=2)))
    x = graphs.randn(0, 777, 500)
    (want,) = graphs.run(proto, {"x": x})
    np.testing.assert_allclose(main(tvm.runtime.tensor(x)).numpy(), want, rtol=1e-5)
