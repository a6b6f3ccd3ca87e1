"""What is fused repeats no work: values that a consumer would compute again are kernels apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.built import HOST, assert_like_oracle, count_ops, imported
from helpers.graphs import model, node, randn
from onnx import TensorProto

from ansor_deploy._tvm import tvm
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.block_view import BlockView, blocks


def squeeze_excite(gate, pool="GlobalAveragePool"):
    """A convolution of 16 channels whose own mean gates it; gate: nodes from g to s."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node(pool, "c", "m"),
        node("Conv", "m down", "d"),
        node("Relu", "d", "r"),
        node("Conv", "r up b", "g"),
        *gate,
        node("Mul", "c s", "y"),
    ]
    constants = {
        "w": randn(0, 16, 3, 3, 3),
        "down": randn(1, 4, 16, 1, 1),
        "up": randn(2, 16, 4, 1, 1),
        "b": randn(3, 16),
        "shape": np.array([1, 16, 1, 1]),
        "flat": np.array([1, 16]),
    }
    return model(nodes, {"x": [1, 3, 56, 56]}, constants=constants)


GATES = {
    "sigmoid": [node("Sigmoid", "g", "s")],
    "hardswish": [node("HardSwish", "g", "s")],
    "steps": [
        node("Reshape", "g flat", "f"),
        node("Tanh", "f", "t"),
        node("Exp", "t", "e"),
        node("Reshape", "e shape", "s"),
    ],
    "plain": [node("Identity", "g", "s")],
}


def largest_epilogue(proto):
    """How many times as large as a reduction's result a stage is that it leads to, at most."""
    found = [1.0]
    for task in extract(imported(proto).mod, HOST).values():
        sch = tvm.s_tir.Schedule(task.mod)
        for view in (BlockView(sch, block) for block in blocks(sch)):
            if view.is_reduction:
                own = math.prod(view.spatial)
                found += [math.prod(user.spatial) / own for user in users(view)]
    return max(found)


def users(view):
    return [later for user in view.consumers for later in (user, *users(user))]


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_gate_is_no_epilogue_of_what_makes_it(gate):
    proto = squeeze_excite(gate)
    assert largest_epilogue(proto) == 1
    assert_like_oracle(proto)


def test_means_of_channels_are_no_epilogue_beside_what_they_are_means_of():
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("ReduceMean", "c", "m", axes=[2, 3], keepdims=1),
        node("Sub", "c m", "y"),
    ]
    proto = model(nodes, {"x": [1, 3, 56, 56]}, constants={"w": randn(0, 16, 3, 3, 3)})
    assert largest_epilogue(proto) == 1
    assert_like_oracle(proto)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_pad_at_the_end_of_an_axis_is_no_epilogue(axis):
    """As the end of a tile of sums it would leave what no sum becomes unwritten."""
    pads = np.array([0, 0, 4 - 4 * axis, 4 * axis])
    nodes = [node("MatMul", "x w", "m"), node("Relu", "m", "r"), node("Pad", "r pads", "y")]
    proto = model(nodes, {"x": [16, 24]}, constants={"w": randn(0, 24, 30), "pads": pads})
    assert largest_epilogue(proto) == 1
    assert_like_oracle(proto)


def test_sums_of_rows_stay_with_their_rows():
    nodes = [
        node("ReduceMean", "x", "m", axes=[-1]),
        node("Sub", "x m", "d"),
        node("Abs", "d", "y"),
    ]
    proto = model(nodes, {"x": [64, 512]})
    assert len(count_ops(proto)) == 1
    assert_like_oracle(proto)


@pytest.mark.parametrize(("function", "kernels"), [("Exp", 2), ("Cos", 2), ("Neg", 1)])
def test_repeated_function_is_a_kernel_of_its_own_where_it_costs_more(function, kernels):
    nodes = [node(function, "x", "e"), node("Add", "z e", "y")]
    proto = model(nodes, {"x": [1, 64], "z": [300, 64]})
    assert len(count_ops(proto)) == kernels
    assert_like_oracle(proto)


@pytest.mark.parametrize(
    ("divisions", "by", "rows", "kernels"),
    [(1, 7, 9, 2), (1, 8, 9, 1), (1, 7, 2, 1), (8, 7, 2, 2)],
    ids=["much", "by shifts", "little", "too much to compile"],
)
def test_repeated_integer_divisions_are_kernels_of_their_own(divisions, by, rows, kernels):
    nodes = [node("Mod", f"x{at} by", f"x{at + 1}") for at in range(divisions)]
    nodes.append(node("Add", f"z x{divisions}", "y"))
    shapes, constants = {"x0": [1, 64], "z": [rows, 64]}, {"by": np.array(by)}
    proto = model(nodes, shapes, constants=constants, dtype=TensorProto.INT64)
    assert len(count_ops(proto)) == kernels
    assert_like_oracle(proto)


def test_no_kernel_reads_hundreds_of_tensors():
    """As pipelines of polynomial features concatenate one column each."""
    parts = [f"p{at}" for at in range(200)]
    nodes = [node("Neg", f"x{at}", one) for at, one in enumerate(parts)]
    nodes.append(node("Concat", " ".join(parts), "y", axis=1))
    proto = model(nodes, {f"x{at}": (1, 1) for at in range(200)})
    assert (
        max(len(task.mod["main"].params) for task in extract(imported(proto).mod, HOST).values())
        < 130
    )


def test_no_kernel_has_hundreds_of_stages():
    """As the steps of a loop have that keeps what is masked."""
    nodes = [node("Add", f"v{at} x", f"v{at + 1}") for at in range(300)]
    proto = model(nodes, {"v0": (1, 1), "x": (1, 1)}, ("v300",))
    assert sum(count_ops(proto).values()) == 3


def test_parts_of_a_concatenation_are_not_repeated():
    nodes = [node("Exp", "x", "e"), node("Exp", "z", "f"), node("Concat", "e f", "y", axis=1)]
    proto = model(nodes, {"x": [256, 64], "z": [256, 192]})
    assert len(count_ops(proto)) == 1
    assert_like_oracle(proto)


def test_a_task_says_why_it_ends():
    tasks = extract(imported(squeeze_excite(GATES["sigmoid"])).mod, HOST).values()
    assert {task.name: task.apart for task in tasks if task.apart} == {
        "conv2d_add_sigmoid": ("multiply_transpose would compute it again for each element",)
    }


def test_parts_of_a_concatenation_say_so():
    nodes = [node("Conv", "x v", "a"), node("Conv", "x w", "b"), node("Concat", "a b", "y", axis=1)]
    constants = {"v": randn(0, 16, 16, 1, 1), "w": randn(1, 16, 16, 1, 1)}
    proto = model(nodes, {"x": [1, 16, 9, 9]}, constants=constants)
    tasks = extract(imported(proto).mod, HOST).values()
    assert "it is written to its place in a concatenation of 2" in {
        sentence for task in tasks for sentence in task.apart
    }
