"""Element types: halves are computed in float32, and every type that ONNX Runtime has is right."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.built import HOST, assert_like_oracle, imported
from helpers.graphs import model, node, randn
from onnx import TensorProto

from ansor_deploy._tvm import collect, tvm
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.block_view import BlockView, blocks


def half(seed, *shape):
    return (randn(seed, *shape) * 0.2).astype(np.float16)


def of_halves(nodes, inputs, **constants):
    return model(nodes, inputs, constants=constants, dtype=TensorProto.FLOAT16)


def convolutions():
    nodes = [
        node("Conv", "x w b", "c", pads=[1] * 4),
        node("Clip", "c low high", "r"),
        node("Conv", "r d", "e", pads=[1] * 4, group=16),
        node("HardSwish", "e", "h"),
        node("MaxPool", "h", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "m p", "f"),
        node("Concat", "f m", "j", axis=1),
        node("GlobalAveragePool", "j", "g"),
        node("Flatten", "g", "y"),
    ]
    weights = {"w": half(0, 16, 3, 3, 3), "b": half(1, 16), "d": half(2, 16, 1, 3, 3)}
    bounds = {"low": np.float16(0), "high": np.float16(6)}
    return of_halves(nodes, {"x": [1, 3, 16, 16]}, **weights, **bounds, p=half(3, 24, 16, 1, 1))


def attention():
    nodes = [
        node("MatMul", "x w", "a"),
        node("Split", "a", "q k v", axis=-1),
        node("Transpose", "k", "t", perm=[0, 2, 1]),
        node("MatMul", "q t", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p v", "o"),
        node("Add", "o x", "r"),
        node("LayerNormalization", "r g h", "n", axis=-1),
        node("Erf", "n", "y"),
    ]
    weights = {"w": half(0, 64, 192), "g": half(1, 64), "h": half(2, 64)}
    return of_halves(nodes, {"x": [2, 20, 64]}, **weights)


def long_sum():
    """Ones that float16 cannot add up beyond 2048, and a product as long."""
    nodes = [
        node("Exp", "x", "e"),
        node("ReduceSum", "e axes", "s", keepdims=1),
        node("MatMul", "e w", "m"),
        node("Div", "m s", "y"),
    ]
    constants = {"axes": np.array([-1]), "w": half(0, 4096, 32)}
    return of_halves(nodes, {"x": [4, 4096]}, **constants)


NETS = {"convolutions": convolutions, "attention": attention, "long sum": long_sum}


@pytest.mark.parametrize("name", NETS)
def test_a_net_of_halves_is_right(name):
    assert_like_oracle(NETS[name]())


@pytest.mark.parametrize("name", NETS)
def test_sums_of_halves_are_kept_in_float32(name):
    sums = 0
    for task in extract(imported(NETS[name]()).mod, HOST).values():
        sch = tvm.s_tir.Schedule(task.mod)
        for view in (BlockView(sch, block) for block in blocks(sch)):
            kept = {str(region.source.dtype) for region in view.node.writes}
            assert not view.is_reduction or kept == {"float32"}
            sums += view.is_reduction
    assert sums


def test_a_table_of_halves_stays_one():
    nodes = [node("Cast", "x", "i", to=TensorProto.INT64), node("Gather", "table i", "y")]
    proto = of_halves(nodes, {"x": [5]}, table=half(0, 1000, 8))
    found = collect(imported(proto).mod["main"], tvm.ir.GenericConst)
    (table,) = [one for one in found if len(one.ty.shape) == 2]
    assert str(table.ty.dtype) == "float16"
    assert_like_oracle(proto)


def doubles():
    nodes = [
        node("MatMul", "x w", "a"),
        node("LayerNormalization", "a g h", "n", axis=-1),
        node("Softmax", "n", "y", axis=-1),
    ]
    weights = {"w": randn(0, 30, 24), "g": randn(1, 24), "h": randn(2, 24)}
    constants = {name: values.astype(np.float64) for name, values in weights.items()}
    return model(nodes, {"x": [7, 30]}, constants=constants, dtype=TensorProto.DOUBLE)


def wholes(dtype, kind):
    nodes = [node("Add", "x k", "a"), node("Mul", "a x", "m"), node("Max", "m k", "y")]
    return model(nodes, {"x": [5, 33]}, constants={"k": np.arange(33).astype(dtype)}, dtype=kind)


def flags():
    nodes = [node("Not", "x", "n"), node("Or", "n k", "o"), node("Xor", "o x", "y")]
    k = np.arange(33) % 3 == 0
    return model(nodes, {"x": [5, 33]}, constants={"k": k}, dtype=TensorProto.BOOL)


def test_doubles_are_right():
    assert_like_oracle(doubles())


@pytest.mark.parametrize(
    ("dtype", "kind"), [("int64", TensorProto.INT64), ("int32", TensorProto.INT32)]
)
def test_whole_numbers_are_right(dtype, kind):
    assert_like_oracle(wholes(dtype, kind))


def test_flags_are_right():
    assert_like_oracle(flags())
