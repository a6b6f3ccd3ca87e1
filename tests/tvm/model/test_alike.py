"""Layers that differ in scales and zero points alone are one task, which reads these."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node
from onnx import TensorProto
from tvm import te

from ansor_deploy._tvm import collect, op_name, relax, tirx
from ansor_deploy.model.relax.alike import merged_alike

RNG = np.random.default_rng(0)


def residuals(numbers, kind):
    """For each (scale, zero) of two tensors and of their sum, that sum, as float."""
    nodes, constants, inputs = [], {}, {}
    for at, pairs in enumerate(numbers):
        names = [f"{one}{at}" for one in "xyz"]
        for name, (scale, zero) in zip(names, pairs, strict=True):
            constants |= {f"{name}s": np.float32(scale), f"{name}z": kind(zero)}
        x, y, z = names
        nodes += [
            node("DequantizeLinear", f"{x} {x}s {x}z", f"{x}d"),
            node("DequantizeLinear", f"{y} {y}s {y}z", f"{y}d"),
            node("Add", f"{x}d {y}d", f"{z}d"),
            node("QuantizeLinear", f"{z}d {z}s {z}z", z),
        ]
        inputs |= dict.fromkeys((x, y), (3, 70))
    outputs = [f"z{at}" for at in range(len(numbers))]
    made = model(nodes, inputs, outputs, constants=constants)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = {
            np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8,
        }[kind]  # fmt: skip
    return made


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_one_kernel_gives_each_layer_its_own_numbers(kind):
    ends = np.iinfo(kind)
    numbers = [
        [(0.11, 3), (0.07, 5), (0.5, 7)],
        [(0.13, 3), (0.05, 9), (0.3, ends.max)],
        [(0.017, 3), (0.29, 9), (0.9, ends.min + 1)],
    ]
    proto = residuals(numbers, kind)
    feed = {
        one.name: RNG.integers(ends.min, ends.max, (3, 70), kind, endpoint=True)
        for one in proto.graph.input
    }
    assert list(built.count_ops(proto).values()) == [3]
    for at, (pairs, have) in enumerate(zip(numbers, built.run(proto, feed), strict=True)):
        alone = {f"{name}0": feed[f"{name}{at}"] for name in "xy"}
        (wanted,) = built.run(residuals([pairs], kind), alone)
        np.testing.assert_array_equal(have, wanted)


def program(function):
    """A function of 16 numbers."""
    x = te.placeholder((16,), name="x")
    return te.create_prim_func([x, te.compute((16,), lambda at: function(x[at]))])


def functions_of(*functions):
    """How many there are after the pass, where each is called with what the one before made."""
    builder, kind = relax.BlockBuilder(), relax.TensorType((16,), "float32")
    value = x = relax.Var("x", kind)
    with builder.function("main", [x]):
        with builder.dataflow():
            for function in functions:
                name = builder.add_func(program(function), "f")
                value = builder.emit(relax.call_tir(name, relax.Tuple([value]), kind))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    calls = collect(merged_alike(builder.get())["main"], relax.Call)
    return len({call.args[0] for call in calls if op_name(call) == "relax.call_tir"})


def number(value):
    return tirx.const(value, "float32")


def test_numbers_that_say_more_than_their_value_stay():
    assert functions_of(lambda x: x * number(0.3), lambda x: x * number(0.7)) == 1
    assert functions_of(lambda x: x / number(0.3), lambda x: x / number(0.7)) == 1
    assert functions_of(lambda x: x / number(0.5), lambda x: x / number(0.25)) == 2  # products
    assert functions_of(lambda x: tirx.max(x, number(0.3)), lambda x: tirx.max(x, number(0.7))) == 2
    assert functions_of(lambda x: x * number(0.0), lambda x: x * number(-0.0)) == 2
    assert functions_of(lambda x: x * number(0.3), lambda x: x + number(0.3)) == 2


@pytest.mark.parametrize("zero", [7, 300])
def test_zero_points_of_what_is_widened_are_read(zero):
    """As int32 where they fit no byte."""

    def centred(by):
        return lambda x: (x.astype("int16") - tirx.const(by, "int16")).astype("float32")

    assert functions_of(centred(3), centred(zero)) == 1
