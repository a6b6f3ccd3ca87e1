"""What is computed from constants alone is computed as a model is compiled."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.built import HOST
from tvm import relax, topi

from ansor_deploy._tvm import structural_equal
from ansor_deploy.codegen.kernels import constants
from ansor_deploy.codegen.kernels.lowering import code_generation
from ansor_deploy.codegen.kernels.objects import Refusal

DTYPES = ["float32", "float16", "int64", "uint8", "bool"]


def chain(dtype):
    """w -> turned -> padded, of a constant; x -> turned, of an argument; and w -> two halves."""
    weight = relax.const((np.arange(24).reshape(4, 6) % 7).astype(dtype), dtype)
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType([4, 6], dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            turned = builder.emit_te(topi.transpose, weight)
            padded = builder.emit_te(topi.repeat, turned, 2, 0)
            given = builder.emit_te(topi.transpose, x)
            halves = builder.emit_te(topi.split, weight, 2, 1)
            made = builder.emit_output(relax.Tuple([padded, given, halves]))
        builder.emit_func_output(made)
    return builder.get()


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_what_tvm_computes(dtype):
    mod = chain(dtype)
    with code_generation(HOST):
        have = constants.fold(mod)
        assert called(have) == ["transpose", "split"]
        folds = relax.transform.FoldConstant()
        assert structural_equal(folds(have)["main"], folds(mod)["main"])


def test_what_does_not_compile_is_left(monkeypatch):
    def refuse(kernels, target):
        return {kernel.symbol: Refusal("too much") for kernel in kernels}

    monkeypatch.setattr(constants, "compile_kernels", refuse)
    mod = chain("float32")
    assert called(constants.fold(mod)) == called(mod)


def test_part_of_a_chain_may_be_left(monkeypatch):
    whole, asked = constants.compile_kernels, []

    def refuse_one(kernels, target):
        made = whole(kernels, target)
        asked.extend(kernel.symbol for kernel in kernels)
        first = next(kernel for kernel in kernels if '"T_transpose"' in kernel.program)
        return {**made, first.symbol: Refusal("too much")}

    monkeypatch.setattr(constants, "compile_kernels", refuse_one)
    mod = chain("float32")
    assert called(constants.fold(mod)) == called(mod)
    assert len(asked) == 2


def called(mod):
    """Kernels that the main function calls, in order, without the numbers of their names."""
    values = [one.value for block in mod["main"].body.blocks for one in block.bindings]
    calls = [one for one in values if getattr(getattr(one, "op", None), "name", "")]
    return [one.args[0].name_hint.rstrip("0123456789") for one in calls if one.args]
