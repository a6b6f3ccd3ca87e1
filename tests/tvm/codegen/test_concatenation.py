"""Concatenations without a copy: right wherever parts lie, and copied only where they must."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm
from helpers import built, graphs
from helpers.graphs import model, node, randn
from tvm import te

from ansor_deploy.codegen.kernels.lowering import code_generation
from ansor_deploy.codegen.memory.region import Region, in_region
from ansor_deploy.ship.verify.tolerance import compare

IMAGE = {"x": [1, 16, 15, 15]}


def convolution(made, read, taps):
    """Nodes of a convolution with ReLU."""
    pads = {"pads": [taps // 2] * 4, "kernel_shape": [taps, taps]}
    return [node("Conv", f"{read} w{made}", f"c{made}", **pads), node("Relu", f"c{made}", made)]


def network(*parts):
    """Nodes and weights of convolutions, given as (made, read, channels in, channels out, taps)."""
    nodes, constants = [], {}
    for seed, part in enumerate(parts):
        if isinstance(part, tuple):
            made, read, before, after, taps = part
            nodes += convolution(made, read, taps)
            constants[f"w{made}"] = randn(seed, after, before, taps, taps)
        else:
            nodes.append(part)
    return model(nodes, IMAGE, constants=constants)


def concat(made, parts, axis=1):
    return node("Concat", parts, made, axis=axis)


FIRE = network(
    ("a", "x", 16, 8, 1), ("b", "a", 8, 16, 1), ("c", "a", 8, 16, 3), concat("d", "b c"),
    ("y", "d", 32, 16, 1),
)  # fmt: skip
DENSE = network(
    ("a", "x", 16, 16, 1), ("b", "a", 16, 16, 3), concat("d", "a b"), node("Tanh", "d", "t"),
    ("e", "t", 32, 16, 3), concat("f", "a b e"), node("Tanh", "f", "u"), ("y", "u", 48, 16, 1),
)  # fmt: skip
ROWS = network(
    ("a", "x", 16, 16, 1), ("b", "x", 16, 16, 3), concat("d", "a b", axis=2), ("y", "d", 16, 16, 1)
)
NESTED = network(
    ("a", "x", 16, 16, 1), ("b", "x", 16, 16, 3), concat("d", "a b"), ("e", "d", 32, 16, 1),
    concat("f", "e d"), ("y", "f", 48, 16, 1),
)  # fmt: skip
ODD = network(("a", "x", 16, 5, 1), ("b", "x", 16, 7, 3), concat("d", "a b"), ("y", "d", 12, 16, 1))
OUTPUT = network(("a", "x", 16, 16, 1), ("b", "x", 16, 16, 3), concat("y", "a b"))
TWICE = network(
    ("a", "x", 16, 16, 1), ("b", "x", 16, 16, 3), concat("d", "a b a"), ("y", "d", 48, 16, 1)
)
INPUT = model(
    [node("MatMul", "x v", "a"), concat("d", "x a"), node("MatMul", "d w", "y")],
    {"x": [64, 16]},
    constants={"v": randn(0, 16, 32), "w": randn(1, 48, 16)},
)
SEEN = model(
    [node("MatMul", "x v", "a"), node("MatMul", "x u", "b"), concat("d", "a b"),
     node("MatMul", "d w", "y")],
    {"x": [64, 16]}, ("y", "a"),
    constants={"v": randn(0, 16, 32), "u": randn(1, 16, 32), "w": randn(2, 64, 16)},
)  # fmt: skip
SHARED = network(
    ("a", "x", 16, 16, 1), ("b", "a", 16, 16, 3), ("c", "a", 16, 16, 1), concat("d", "a b"),
    concat("e", "c a"), ("f", "d", 32, 16, 1), ("g", "e", 32, 16, 1), node("Add", "f g", "y"),
)  # fmt: skip


def copies(compiled):
    """How many kernels belong to no task: those that copy parts."""
    return sum(not tasks for tasks in compiled.tasks.values())


PLACES = {"fire": FIRE, "dense": DENSE, "rows": ROWS, "nested": NESTED, "output": OUTPUT}
COPIES = {"twice": (TWICE, 2), "input": (INPUT, 1), "seen": (SEEN, 1), "shared": (SHARED, 1)}


@pytest.mark.parametrize(
    ("proto", "copied"),
    [*((proto, 0) for proto in PLACES.values()), *COPIES.values()],
    ids=[*PLACES, *COPIES],
)
def test_parts_are_written_in_place_or_copied(proto, copied):
    compiled = built.compiled(proto)
    assert copies(compiled) == copied
    assert_right(proto, compiled)


@pytest.mark.parametrize(("channels", "copied"), [(8, 2), (16, 0)])
def test_short_runs_are_copied_beyond_the_cache(channels, copied):
    proto = network(
        ("a", "x", 16, channels, 1), ("b", "a", channels, channels, 3), concat("d", "a b"),
        ("y", "d", 2 * channels, 16, 1),
    )  # fmt: skip
    small = replace(built.HOST, name="small", l2_bytes=1 << 13)
    compiled = built.compiled(proto, small)
    assert copies(compiled) == copied
    assert_right(proto, compiled)


def test_vectors_that_channels_do_not_fill():
    assert_right(ODD, built.compiled(ODD))


def assert_right(proto, compiled):
    feeds = graphs.random_feeds(proto)
    result = built.main_of(compiled)(*map(tvm.runtime.tensor, feeds.values()))
    found = [result] if hasattr(result, "shape") else list(result)
    for have, want in zip(found, graphs.run(proto, feeds), strict=True):
        assert compare(have.numpy(), want)[0]


def test_tiny_parts_are_concatenated_by_one_kernel():
    names = [f"a{step}" for step in range(20)]
    nodes = [node("MatMul", f"x w{step}", name) for step, name in enumerate(names)]
    constants = {f"w{step}": randn(step, 8, 8) for step in range(20)}
    proto = model([*nodes, concat("y", " ".join(names))], {"x": [4, 8]}, constants=constants)
    assert len(built.count_ops(proto)) == 2


def test_swishes_are_written_in_place():
    swishes = [
        (node("Conv", f"x w{name}", name), node("Sigmoid", name, f"s{name}")) for name in ("a", "b")
    ]
    nodes = [one for pair in swishes for one in pair]
    nodes += [node("Mul", "a sa", "c"), node("Mul", "b sb", "d"), concat("e", "c d")]
    nodes += [node("Conv", "e wf", "f"), node("MaxPool", "e", "p", kernel_shape=[1, 1])]
    nodes += [node("Concat", "f p", "y", axis=1)]
    shapes = {"wa": (16, 16, 1, 1), "wb": (16, 16, 1, 1), "wf": (8, 32, 1, 1)}
    constants = {name: randn(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}
    proto = model(nodes, IMAGE, constants=constants)
    assert not any("concatenate" in name for name in built.count_ops(proto))


def test_rotated_halves_stay_in_the_kernel_that_reads_them():
    begins = {"zero": [0], "half": [8], "end": [16], "last": [-1]}
    nodes = [
        node("Slice", "x zero half last", "a"),
        node("Slice", "x half end last", "b"),
        node("Neg", "b", "n"),
        node("Concat", "n a", "r", axis=-1),
        node("Mul", "r x", "y"),
    ]
    constants = {name: np.array(value) for name, value in begins.items()}
    proto = model(nodes, {"x": [4, 16]}, constants=constants)
    assert len(built.count_ops(proto)) == 1


def scheduled(columns: int, lanes: int):
    """Twice as much of everything, in vectors that go on from row to row."""
    x = te.placeholder((8, columns), name="x")
    out = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="out")
    sch = tvm.s_tir.Schedule(te.create_prim_func([x, out]))
    fused = sch.fuse(*sch.get_loops("out"))
    sch.vectorize(sch.split(fused, [None, lanes])[1])
    return sch.mod["main"]


@pytest.mark.parametrize(("columns", "fits"), [(16, True), (32, True), (12, False)])
def test_vectors_stay_within_rows(columns, fits):
    func = scheduled(columns, 16 if columns > 12 else 8)
    assert (in_region(func, 1, Region((8, 64), (0, 16))) is not None) == fits


def test_a_part_lies_where_it_should():
    func = in_region(scheduled(16, 16), 1, Region((8, 64), (0, 16)))
    x, out = randn(0, 8, 16), np.zeros((8, 64), np.float32)
    with code_generation(built.HOST):
        run = tvm.compile(tvm.IRModule({"main": func}))["main"]
    made = tvm.runtime.tensor(out)
    run(tvm.runtime.tensor(x), made)
    out[:, 16:32] = 2 * x
    np.testing.assert_array_equal(made.numpy(), out)
