"""Conditions that guard others: what one keeps from being read, is not read for the other."""

from ansor_deploy._tvm import collect, structural_equal, tirx, tvm
from ansor_deploy.codegen.passes.conditions import one_by_one


def test_what_a_condition_guards_is_read_where_it_holds():
    at = tirx.Var("at", "int32")
    buffer = tirx.decl_buffer((16,), "float32")
    value = tirx.FloatImm("float32", 1.0)
    read = tirx.BufferLoad(buffer, [at - 4])
    guarded = tirx.if_then_else(tirx.all(at >= 4, at < 9, read > 0.0), value, read * 2.0)
    store = tirx.BufferStore(buffer, guarded, [at])
    loop = tirx.For(at, 0, 16, tirx.ForKind.SERIAL, store)
    made = one_by_one(tvm.IRModule({"main": tirx.PrimFunc([buffer], loop)}))
    outer, *rest = made["main"].body.body.value.args
    assert not collect(outer, tvm.ir.TensorLoad)
    (inner, *_), kept = rest[0].args, rest[1]
    assert collect(inner, tvm.ir.TensorLoad)
    assert structural_equal(kept, rest[0].args[2])
