"""The default schedule fits every program, changes no result, and is parallel and in vectors."""

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest
import tvm
from helpers import built, graphs
from helpers.graphs import model, node, randn
from helpers.programs import PROGRAMS, conv2d, depthwise, pool, program
from tvm import relax, te
from tvm_ffi import structural_equal

from ansor_deploy.codegen import executable
from ansor_deploy.codegen.kernels.lowering import code_generation
from ansor_deploy.marks.partial_lanes import PARTIAL_LANES
from ansor_deploy.model.relax.extract import extract, task_of
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.space.block_view import BlockView, blocks
from ansor_deploy.space.default_schedule import _one_by_one, default_module, default_schedule
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import Sketch
from ansor_deploy.space.tile_sizes import register_tiles
from ansor_deploy.space.trace import dump, replay

TARGETS = [built.with_vectors(64, 32), built.with_vectors(32), built.with_vectors(16)]
# Contractions, poolings and rows with extents that a vector divides: these must be fast.
QUICK = [
    *("conv 13x13", "conv to 1000", "conv from 3", "conv residual", "conv clip", "conv1d"),
    *("conv3d", "depthwise", "grouped", "matmul", "matmul transposed", "gemv", "batched"),
    *("gemv transposed", "batched transposed", "int8 product", "max pool", "avg pool 3d"),
    *("matmul prime", "gemv prime", "batched prime", "conv 7x7 to prime", "max pool prime"),
    *("layer norm", "scaled softmax", "max of row", "add", "gather", "where"),
]


# A program of each set of rules and questions that default schedules are made by.
WAYS = [
    *("conv nchw", "concat rows", "masked attention", "mean of all", "dot", "gated sum"),
    *("product then softmax", "two reductions across", "grouped by 2", "conv1d", "two products"),
    *("conv int32", "prod", "matmul", "matmul odd", "gemv column", "phases interleaved"),
    *("conv transpose", "softmax over middle", "softmax over rows", "log softmax", "depthwise"),
    *("gather", "argmax of row", "argmin of all", "avg pool 3d"),
]


def in_turn(name):
    """The target of a program where each width of vectors has its turn."""
    return TARGETS[list(PROGRAMS).index(name) % 3]


@cache
def scheduled(name, target):
    return default_schedule(PROGRAMS[name](), target)


def is_annotated(mod, kind):
    return f"T.{kind}(" in mod.script()


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_result_changes(name):
    have = built.loop_outputs(scheduled(name, in_turn(name)).mod)
    for one, other in zip(have, built.loop_outputs(PROGRAMS[name]()), strict=True):
        assert compare(one, other)[0]


@pytest.mark.parametrize("name", ["conv residual", "matmul prime", "layer norm", "gather"])
def test_without_a_trace_it_is_the_same_program(name):
    mod = PROGRAMS[name]()
    assert structural_equal(default_module(mod, TARGETS[0]), scheduled(name, TARGETS[0]).mod)


@pytest.mark.parametrize("name", WAYS)
def test_the_schedule_is_deterministic_and_its_trace_replays(name):
    mod, target = PROGRAMS[name](), in_turn(name)
    first = scheduled(name, target)
    text = dump(first.trace)
    assert dump(default_schedule(PROGRAMS[name](), target).trace) == text
    assert structural_equal(replay(mod, text).mod, first.mod)


@pytest.mark.parametrize("name", QUICK)
def test_costly_programs_run_in_parallel_and_in_vectors(name):
    mod = scheduled(name, in_turn(name)).mod
    assert is_annotated(mod, "parallel")
    assert is_annotated(mod, "vectorized") or PARTIAL_LANES in mod.script()


@pytest.mark.parametrize(
    "name", ["softmax", "softmax odd", "layer norm", "scaled softmax", "guarded softmax"]
)
def test_a_row_stays_in_one_parallel_loop(name):
    script = scheduled(name, TARGETS[2]).mod.script()
    assert script.count("T.parallel(") == 1


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("int8", 32), ("float16", 16), ("float32", 8), ("float64", 4)]
)
def test_vectors_fill_a_register_whatever_their_elements(dtype, lanes):
    x = te.placeholder((8, 128), dtype, "x")
    func = te.create_prim_func([x, te.compute((8, 128), lambda i, j: x[i, j] + x[i, j], "y")])
    script = default_schedule(task_of(func, "add", TARGETS[1]).mod, TARGETS[1]).mod.script()
    assert f"in T.vectorized({lanes})" in script


def test_what_is_looked_up_by_long_indices_fills_a_register():
    script = scheduled("gather", TARGETS[1]).mod.script()
    assert "in T.vectorized(8)" in script


@pytest.mark.parametrize("name", ["softmax", "layer norm", "max of row"])
def test_reductions_along_rows_keep_a_partial_result_in_each_lane(name):
    mod = scheduled(name, TARGETS[2]).mod
    assert PARTIAL_LANES in mod.script()


@pytest.mark.parametrize("registers", [8, 16, 32])
def test_accumulators_fit_the_vector_registers(registers):
    sch = tvm.s_tir.Schedule(conv2d(14, 32, 64), debug_mask="none")
    contraction = next(v for rv in blocks(sch) if (v := BlockView(sch, rv)).is_contraction)
    target = built.with_vectors(16, registers)
    for tile in register_tiles(contraction, target, [1] * 7):
        assert 1 < prod(tile) // 4 < registers


@pytest.mark.parametrize(("registers", "most"), [(16, 6), (32, 9)])
def test_taps_of_a_depthwise_kernel_keep_their_registers(registers, most):
    sch = tvm.s_tir.Schedule(depthwise(13, 32), debug_mask="none")
    product = next(v for rv in blocks(sch) if (v := BlockView(sch, rv)).is_contraction)
    offered = register_tiles(product, built.with_vectors(16, registers), [1] * 7)
    assert prod(offered[0]) // 4 == most
    assert max(prod(tile) // 4 for tile in offered) == most


@pytest.mark.parametrize(("channels", "most"), [(3, 16), (32, 28)])
def test_few_channels_leave_some_registers_without_sums(channels, most):
    sch = tvm.s_tir.Schedule(conv2d(56, channels, 32, stride=2), debug_mask="none")
    product = next(v for rv in blocks(sch) if (v := BlockView(sch, rv)).is_contraction)
    offered = register_tiles(product, built.with_vectors(64, 32), [1] * 7)
    assert max(prod(tile) // 16 for tile in offered) == most


def cropped(columns):
    """A matrix multiplication of 40 columns, of which so many are wanted."""
    x, w = te.placeholder((12, 16)), te.placeholder((16, 40))
    k = te.reduce_axis((0, 16))
    y = te.compute((12, 40), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k))
    return program([x, w], te.compute((12, columns), lambda i, j: te.max(y[i, j], 0)), free=(1,))


@pytest.mark.parametrize(("columns", "uneven"), [(40, True), (36, False)])
def test_tiles_divide_columns_of_which_some_are_left_out(columns, uneven):
    sch = tvm.s_tir.Schedule(cropped(columns), debug_mask="none")
    product = next(v for rv in blocks(sch) if (v := BlockView(sch, rv)).is_contraction)
    sizes = {tile[-1] for tile in register_tiles(product, built.with_vectors(32), [1] * 3)}
    assert any(40 % size for size in sizes) == uneven


@pytest.mark.parametrize(("columns", "most"), [(24, 14), (40, 8), (48, 9), (56, 6)])
def test_a_tile_whose_last_vector_is_cut_short_leaves_registers_for_that(columns, most):
    sch = tvm.s_tir.Schedule(conv2d(14, 32, columns), debug_mask="none")
    contraction = next(v for rv in blocks(sch) if (v := BlockView(sch, rv)).is_contraction)
    offered = register_tiles(contraction, built.with_vectors(64, 32), [1] * 7)
    whole = -(-columns // 16) * 16
    assert max(prod(tile[:-1]) for tile in offered if tile[-1] == whole) == most


@pytest.mark.parametrize(("cores", "columns"), [(1, 48), (2, 32)])
def test_few_rows_have_so_many_panels_that_each_is_fetched_ahead(cores, columns):
    """Two cores would share the tiles of seven panels, and fetch none."""
    sch = tvm.s_tir.Schedule(conv2d(7, 256, 320), debug_mask="none")
    contraction = next(v for rv in blocks(sch) if (v := BlockView(sch, rv)).is_contraction)
    target = replace(built.with_vectors(64, 32), cores=cores)
    assert register_tiles(contraction, target, [1] * 7)[0][-1] == columns


@pytest.mark.parametrize("columns", [17, 49, 50, 63])
def test_vectors_of_a_tile_end_as_vectors_where_columns_are_left_over(columns):
    x, w = te.placeholder((49, 32)), te.placeholder((32, columns))
    k = te.reduce_axis((0, 32))
    y = te.compute((49, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k))
    mod = program([x, w], te.compute(y.shape, lambda i, j: te.max(y[i, j], 0)))
    sch = default_schedule(mod, TARGETS[0])
    *_, last = blocks(sch)
    *_, vectors, lanes = (sch.get(loop) for loop in sch.get_loops(last))
    assert lanes.kind == tvm.tirx.ForKind.VECTORIZED
    assert (int(vectors.extent), int(lanes.extent)) == (-(-columns // 16), 16)
    have, want = built.kernel_outputs(sch.mod), built.kernel_outputs(mod)
    np.testing.assert_allclose(have[0], want[0], rtol=1e-5, atol=1e-5)


def rounded_again(times):
    """A product in windows of 7 x 7, rounded to steps so many times."""
    x, w = te.placeholder((6, 49, 32)), te.placeholder((6, 32, 49))
    k = te.reduce_axis((0, 32))
    y = te.compute((6, 49, 49), lambda b, i, j: te.sum(x[b, i, k] * w[b, k, j], axis=k))

    def steps(value):
        for _ in range(times):
            value = te.max(te.min(te.nearbyint(value * 1.1), 255.0), 0.0) + 1.0
        return value

    return program([x, w], te.compute(y.shape, lambda *at: steps(y(*at))))


@pytest.mark.parametrize(("times", "fewer"), [(1, False), (12, True), (20, True)])
def test_a_long_epilogue_gets_a_smaller_tile(times, fewer):
    sketch, _ = next(_one_by_one(rounded_again(times), TARGETS[0], shipped_rules("llvm"), {}))
    (tile,) = [one for one in sketch.guesses if one.question.about == "register"]
    assert bool(tile.index) == fewer
    sketch.program(Guess())  # which is not too much code


def test_a_program_that_nothing_fits_keeps_its_loops(monkeypatch):
    def refuse(sch, target):
        raise RuntimeError("an internal check of TVM")

    monkeypatch.setattr(Sketch, "program", refuse)
    mod = pool("max", 2, 16)
    assert structural_equal(default_schedule(mod, TARGETS[0]).mod, mod)


def packed_main(proto):
    """The main function as it is compiled, with the weights packed."""
    imported = built.imported(proto)
    mod = tvm.IRModule(dict(imported.mod.functions.items()))
    for name, task in extract(imported.mod, built.HOST).items():
        func = default_schedule(task.mod, built.HOST).mod["main"]
        mod[mod.get_global_var(name)] = executable._private(func)
    with code_generation(built.HOST):
        return executable._pack_weights(mod)


def test_constant_weights_are_packed_before_run_time():
    weights = {"w": randn(0, 32, 8, 3, 3), "k": randn(1, 32, 10)}
    proto = model(
        [
            node("Conv", "x w", "c", pads=[1] * 4),
            node("GlobalAveragePool", "c", "g"),
            node("Flatten", "g", "f"),
            node("MatMul", "f k", "y"),
        ],
        {"x": (1, 8, 6, 6)},
        constants=weights,
    )
    mod = packed_main(proto)
    called = []

    def visit(expr):
        if isinstance(expr, relax.Call) and getattr(expr.op, "name", "") == "relax.call_tir":
            called.append(expr.args[0].name_hint)

    relax.analysis.post_order_visit(mod["main"], visit)
    assert any("conv2d" in name for name in called)
    assert not [name for name in called if "weight_prepack" in name]
    assert "layout_rewrite_preproc" not in mod.script()
    built.assert_like_oracle(proto)


def test_weights_computed_at_run_time_are_packed_there():
    proto = model(
        [node("Neg", "k", "n"), node("MatMul", "x n", "y")], {"x": (4, 16), "k": (16, 32)}
    )
    feeds = graphs.random_feeds(proto)
    (have,) = built.run(proto, feeds)
    np.testing.assert_allclose(have, feeds["x"] @ -feeds["k"], rtol=1e-4, atol=1e-4)


def test_an_axis_that_is_divided_where_it_is_shifted_is_not_split():
    nodes = [
        *(node("Reshape", "x s", "r"), node("Slice", "r four end one", "a")),
        *(node("Slice", "r zero four one", "b"), node("Concat", "a b", "c", axis=1)),
        *(node("Reshape", "c rows", "d"), node("Transpose", "d", "e", perm=[0, 2, 1, 3])),
        *(node("Reshape", "e flat", "f"), node("Reshape", "f parts", "g")),
        *(node("Transpose", "g", "h", perm=[0, 2, 1, 3]), node("Reshape", "h last", "y")),
    ]
    shapes = {"s": [63, 15], "four": [4], "end": [15], "one": [1], "zero": [0], "last": [5, 189]}
    shapes |= {"rows": [1, 63, 1, 15], "flat": [1, 945], "parts": [1, 1, 5, 189]}
    constants = {name: np.int64(values) for name, values in shapes.items()}
    x = np.arange(63 * 15, dtype=np.float32).reshape(63, 15)
    (have,) = built.run(model(nodes, {"x": x.shape}, constants=constants), {"x": x})
    np.testing.assert_array_equal(have, np.roll(x, -4, 1).reshape(5, 189))
