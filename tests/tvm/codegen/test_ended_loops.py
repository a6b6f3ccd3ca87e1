"""Loops do the steps that count, each once, and end where these end."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from helpers.built import HOST

from ansor_deploy._tvm import collect, llvm_target, tirx, tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE
from ansor_deploy.codegen.passes.ended_loops import ended_loops

STEPS, ROWS = 240, 24
COUNTS = (0, 1, 2, 5, 23, 24, 25, 100, 239, 240, 500)


def both(one, other):
    return one & other if isinstance(one, np.ndarray) else tirx.And(one, other)


# Whether a step counts, of numbers and of expressions.
ASKED = {
    "below": lambda at, n: at < n,
    "at most": lambda at, n: at * 7 + 2 <= n,
    "rows": lambda at, n: at % ROWS * 3 < n,
    "matrices": lambda at, n: at // ROWS * 3 < n,
    "some matrices": lambda at, n: both(at % ROWS < n, at // ROWS < 7),
}
TWO = replace(HOST, cores=2)


def program(asked, kind, dtype="int64"):
    """Adds one for each step that counts."""
    count, made = tirx.decl_buffer((), "int64"), tirx.decl_buffer((STEPS,), "float32")
    at = tirx.Var("at", dtype)
    store = tirx.BufferStore(made, tirx.BufferLoad(made, [at]) + 1.0, [at])
    guard = tirx.IfThenElse(asked(at.astype("int64"), count[()]), store, None)
    loop = tirx.For(at, tirx.const(0, dtype), tirx.const(STEPS, dtype), kind, guard)
    func = tirx.PrimFunc([count, made], loop).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": func.with_attr("tirx.noalias", True)})


@pytest.mark.parametrize("kind", [tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL], ids=str)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_steps_that_count_are_done_once(asked, kind):
    here = tvm.target.Target({**llvm_target(TWO), "opt-level": 0})
    main = tvm.compile(program(asked, kind), target=here, tir_pipeline=PIPELINE)["main"]
    for n in COUNTS:
        made = tvm.runtime.tensor(np.zeros(STEPS, np.float32))
        main(tvm.runtime.tensor(np.array(n, np.int64)), made)
        np.testing.assert_array_equal(made.numpy(), asked(np.arange(STEPS), n))


@pytest.mark.parametrize("name", [one for one in ASKED if one != "some matrices"])
def test_loops_end_as_a_run_says(name):
    mod = program(ASKED[name], tirx.ForKind.SERIAL)
    func = mod["main"].with_attr("target", tvm_target(TWO))
    (within, *_) = collect(ended_loops(tvm.IRModule({"main": func}))["main"].body, tirx.For)
    assert not isinstance(within.extent, tirx.IntImm)


def test_steps_that_skip_nothing_stay():
    mod = program(lambda at, _: at < ROWS, tirx.ForKind.SERIAL)
    func = mod["main"].with_attr("target", tvm_target(TWO))
    (loop,) = collect(ended_loops(tvm.IRModule({"main": func}))["main"].body, tirx.For)
    assert int(loop.extent) == STEPS
