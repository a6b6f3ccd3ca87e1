"""Loops that TVM parts: at the end of tiles, and not where other loops decide."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node

from ansor_deploy._tvm import collect, structural_equal, tirx, tvm
from ansor_deploy.marks.partition import PARTITION, hidden, parted, shown


def rolled(columns, shift):
    """A matrix flattened, padded and rolled, then its rows and its columns: windows, put back."""
    size = 45 * columns
    ends = {"n": [size], "z": [0], "s": [shift], "r": [26], "c": [6], "big": [1 << 30]}
    constants = {name: np.int64(value) for name, value in ends.items()}
    constants |= {"flat": np.int64([-1]), "pads": np.int64([4, 5])}
    constants |= {"grid": np.int64([45, columns]), "one": np.int64([1])}
    nodes = [node("Reshape", "x flat", "f"), node("Pad", "f pads", "p")]
    for name, axis, source in (("s", "z", "p"), ("r", "z", "g"), ("c", "one", "h")):
        made = {"p": "q", "g": "h", "h": "y"}[source]
        nodes += [
            node("Slice", f"{source} {name} big {axis}", f"{made}0"),
            node("Slice", f"{source} z {name} {axis}", f"{made}1"),
            node("Concat", f"{made}0 {made}1", made, axis=int(axis == "one")),
        ]
        if source == "p":
            nodes.append(node("Reshape", "q grid", "g"))
    proto = model(nodes, {"x": (size - 9,)}, constants=constants)
    x = np.arange(1, size - 8, dtype=np.float32)
    flat = np.roll(np.pad(x, (4, 5)), -shift).reshape(45, columns)
    return proto, x, np.roll(flat, (-26, -6), (0, 1))


@pytest.mark.parametrize(("columns", "shift"), [(37, 1539), (29, 200)])
def test_what_is_rolled_in_rows_and_columns_is_all_there(columns, shift):
    proto, x, want = rolled(columns, shift)
    (have,) = built.run(proto, {"x": x})
    np.testing.assert_array_equal(have, want)


def marked(condition):
    """A tile of eight that is marked, in a loop over rows; each element where a condition holds."""
    row, at = tirx.Var("row", "int32"), tirx.Var("at", "int32")
    buffer = tirx.decl_buffer((128,), "float32")
    one, zero = tirx.FloatImm("float32", 1.0), tirx.FloatImm("float32", 0.0)
    store = tirx.BufferStore(
        buffer, tirx.if_then_else(condition(row, at), one, zero), [row * 8 + at]
    )
    tile = tirx.For(at, 0, 8, tirx.ForKind.SERIAL, store)
    body = tirx.AttrStmt(at, PARTITION, tirx.IntImm("bool", 1), tile)
    rows = tirx.For(row, 0, 16, tirx.ForKind.SERIAL, body)
    return tirx.PrimFunc([buffer], rows)


@pytest.mark.parametrize(
    ("condition", "hides"),
    [
        (lambda row, at: row * 8 + at < 100, True),
        (lambda row, at: at < 5, False),
        (lambda row, at: row < 5, False),
    ],
)
def test_what_depends_on_a_loop_around_is_hidden_and_shown_again(condition, hides):
    before = marked(condition)
    between = hidden(before)
    assert structural_equal(before, between) != hides
    calls = [
        one for one in collect(between.body, tvm.ir.Call) if one.op.name != "prim.if_then_else"
    ]
    assert len(calls) == hides
    after = shown(between).body
    assert structural_equal(
        collect(after, tirx.BufferStore), collect(before.body, tirx.BufferStore)
    )
    assert collect(after, tirx.AttrStmt) == []


def wide(number):
    return tirx.const(number, "int64")


def counted(condition):
    """Tiles of eight of 29 rows, of loops of 64 bits, each done where a condition on a count holds.

    As TVM parts and simplifies it; it fails on types that differ.
    """
    at, row = tirx.Var("at", "int64"), tirx.Var("row", "int64")
    count, made = tirx.decl_buffer((1,), "int64"), tirx.decl_buffer((29,), "float32")
    store = tirx.BufferStore(made, tirx.FloatImm("float32", 1.0), [at * 8 + row])
    tile = tirx.IfThenElse(at * 8 + row < wide(29), store, None)
    rows = tirx.For(row, wide(0), wide(8), tirx.ForKind.UNROLLED, tile)
    asked = condition(at * 8, tirx.BufferLoad(count, [wide(0)]))
    guard = tirx.IfThenElse(asked, rows, None)
    loop = tirx.For(at, wide(0), wide(4), tirx.ForKind.SERIAL, guard)
    body = tirx.AttrStmt(at, PARTITION, tirx.IntImm("bool", 1), loop)
    return simplified(parted(tirx.PrimFunc([count, made], body)))


def simplified(func):
    return tvm.s_tir.transform.StmtSimplify()(tvm.IRModule({"main": func}))["main"].body


@pytest.mark.parametrize(
    "condition",
    [
        lambda row, count: row % 29 < tirx.floordiv(count + 4, wide(4)),
        lambda row, count: tirx.Or(row < count - 2, row < tirx.floordiv(count + 9, wide(16)) * 2),
    ],
)
def test_whole_tiles_of_rows_that_a_run_counts_are_one_loop_and_the_rest_is_apart(condition):
    after = counted(condition)
    assert len(collect(after, tirx.BufferStore)) == 2
    asked = [one.condition for one in collect(after, tirx.IfThenElse)]
    assert sum(bool(collect(one, tvm.ir.TensorLoad)) for one in asked) == 2
    assert not any(collect(one, tvm.ir.Call) for one in asked)  # nothing is hidden any more


def test_lanes_that_choose_by_what_a_run_counts_end_where_their_row_does():
    at, lane = tirx.Var("at", "int64"), tirx.Var("lane", "int64")
    count, made = tirx.decl_buffer((1,), "int64"), tirx.decl_buffer((30,), "float32")
    place = at * 16 + lane
    counts = place < tirx.BufferLoad(count, [wide(0)])
    one, zero = (tirx.FloatImm("float32", value) for value in (1.0, 0.0))
    store = tirx.BufferStore(made, tirx.Select(counts, one, zero), [place])
    body = tirx.IfThenElse(place < wide(30), store, None)
    for var, extent, kind in ((lane, 16, "VECTORIZED"), (at, 2, "SERIAL")):
        loop = tirx.For(var, wide(0), wide(extent), getattr(tirx.ForKind, kind), body)
        body = tirx.AttrStmt(var, PARTITION, tirx.IntImm("bool", 1), loop)
    after = simplified(parted(tirx.PrimFunc([count, made], body)))
    lanes = [one for one in collect(after, tirx.For) if one.kind == tirx.ForKind.VECTORIZED]
    assert [int(one.extent) for one in lanes if collect(one, tirx.BufferStore)] == [16, 14]
