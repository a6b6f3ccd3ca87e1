"""Loops that ask at each step whether there is something to do end where there is not."""

import pytest

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.passes.short_loops import short_loops

AT = tirx.Var("at", "int32")
BUFFER = tirx.decl_buffer((6,), "float32")
STORE = tirx.BufferStore(BUFFER, tirx.FloatImm("float32", 1.0), [AT])
ASKED = {
    "below a number": (AT < 4, None, 4, False),
    "below one that is never reached": (AT < 9, None, 6, False),
    "from a step on": (AT >= 4, None, 6, True),
    "something else as well": (tirx.all(AT < 4, BUFFER[0] > 0.0), None, 6, True),
    "what to do": (AT < 4, STORE, 6, True),
}


@pytest.mark.parametrize(("condition", "otherwise", "steps", "asks"), ASKED.values(), ids=ASKED)
def test_a_loop_has_as_many_steps_as_do_something(condition, otherwise, steps, asks):
    body = tirx.IfThenElse(condition, STORE, otherwise)
    func = tirx.PrimFunc([BUFFER], tirx.For(AT, 0, 6, tirx.ForKind.UNROLLED, body))
    (loop,) = collect(short_loops(tvm.IRModule({"main": func}))["main"].body, tirx.For)
    assert int(loop.extent) == steps
    assert isinstance(loop.body, tirx.IfThenElse) == asks
