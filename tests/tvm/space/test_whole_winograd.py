"""Winograd's convolution of bytes: exact at the greatest of them, and from weights of bytes."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.programs import program

from ansor_deploy._tvm import tirx, tvm
from ansor_deploy.codegen.kernels.lowering import compiled
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rewriting import rewritings, rewritten
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

CORE = replace(built.with_vectors(32), cpu="x86-64-v3", features=(), cores=1)
A53 = load_target("cortex-a53", [shipped("targets")])
ZERO = 131
BORDER = ZERO - 128  # of signed bytes


def convolution(side, channels, filters, window=(3, 3), pad=1, kind="uint8"):
    """A convolution of bytes less their zero point, or of signed ones within it, and a bias."""
    high, wide = window
    x = tvm.te.placeholder((1, side, side, channels), kind, "x")
    w = tvm.te.placeholder((high, wide, channels, filters), "int8", "w")
    b = tvm.te.placeholder((filters,), "int32", "b")

    def widened(n, y, z, c):
        value, border = x(n, y - pad, z - pad, c), tirx.const(BORDER, kind)
        if kind == "uint8":
            value = value.astype("int16") - tirx.const(ZERO, "int16")
            border = tirx.const(0, "int16")
        inside = [edge for at in (y, z) for edge in (at >= pad, at < side + pad)]
        return tirx.if_then_else(tirx.all(*inside), value, border)

    long = side + 2 * pad
    data = tvm.te.compute((1, long, long, channels), widened, "pad")
    taps = [tvm.te.reduce_axis((0, extent)) for extent in (high, wide, channels)]

    def summed(n, y, z, k):
        r, s, c = taps
        value = data(n, y + r, z + s, c).astype("int32") * w(r, s, c, k).astype("int32")
        return tvm.te.sum(value, taps)

    sums = tvm.te.compute((1, long - high + 1, long - wide + 1, filters), summed, "conv")
    out = tvm.te.compute(sums.shape, lambda n, y, z, k: sums(n, y, z, k) + b(k), "biased")
    return program([x, w, b], out, free=(1,))


def extreme(rng, least, most, shape, dtype):
    """Half of them the least or the greatest."""
    ends = rng.choice(np.array([least, most]), shape)
    between = rng.integers(least, most + 1, shape)
    return np.where(rng.random(shape) < 0.5, ends, between).astype(dtype)


def given(mod, rng):
    x, w, b, out = (tuple(map(int, one.shape)) for one in mod["main"].params)
    kind = str(mod["main"].params[0].dtype)
    ends = np.iinfo(kind)
    return [
        extreme(rng, ends.min, ends.max, x, kind),
        extreme(rng, -128, 127, w, "int8"),
        rng.integers(-99, 99, b).astype("int32"),
        np.zeros(out, "int32"),
    ]


def wanted(arrays, pad):
    x, w, b, out = arrays
    high, wide, *_ = w.shape
    edges = [(0, 0), (pad, pad), (pad, pad), (0, 0)]
    zero, border = (ZERO, 0) if x.dtype == np.uint8 else (0, BORDER)
    data = np.pad(x.astype(int) - zero, edges, constant_values=border)
    total = np.zeros(out.shape, int)
    _, rows, columns, _ = out.shape
    for r in range(high):
        for s in range(wide):
            total += data[:, r : r + rows, s : s + columns] @ w[r, s].astype(int)
    return total + b


def sketches(mod, target=CORE):
    found = derive(mod, target, shipped_rules("llvm"))
    assert not found.faults
    return [one for one in found.sketches if any(rule == "winograd" for _, rule in one.steps)]


def run(sch, arrays):
    if lacks(CORE.triple, CORE.cpu, CORE.features):
        pytest.skip("this processor lacks the instructions")
    made = compiled({"main": sch.mod["main"].with_attr("global_symbol", "main")}, CORE)
    tensors = [tvm.runtime.tensor(one) for one in arrays]
    made["main"](*tensors)
    return tensors[-1].numpy()


CASES = {
    "as in networks": (14, 32, 32, (3, 3), 1),
    "odd places": (9, 8, 16, (3, 3), 1),
    "columns that are no whole panels": (8, 16, 40, (3, 3), 1),
    "columns that fill no vector": (6, 4, 12, (3, 3), 1),
    "an odd number of columns": (6, 4, 7, (3, 3), 1),
    "no border": (7, 8, 16, (3, 3), 0),
    "one axis": (8, 16, 16, (1, 3), 0),
    "a window of two": (8, 16, 16, (2, 2), 0),
    "the most channels": (6, 256, 16, (3, 3), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_exact_at_the_greatest_bytes(name):
    *shape, pad = CASES[name]
    mod, rng = convolution(*shape, pad), np.random.default_rng(0)
    arrays = given(mod, rng)
    (sketch, *_) = sketches(mod)
    np.testing.assert_array_equal(run(sketch.program(Guess()).sch, arrays), wanted(arrays, pad))


@pytest.mark.parametrize("name", ["as in networks", "odd places", "an odd number of columns"])
def test_it_is_exact_for_a_processor_that_multiplies_signed_bytes(name):
    """Its loops are run here."""
    *shape, pad = CASES[name]
    mod, rng = convolution(*shape, pad, "int8"), np.random.default_rng(0)
    arrays = given(mod, rng)
    (sketch, *_) = sketches(mod, A53)
    np.testing.assert_array_equal(run(sketch.program(Guess()).sch, arrays), wanted(arrays, pad))


def test_it_is_exact_where_all_bytes_are_the_greatest():
    mod = convolution(6, 256, 16)
    shapes = [tuple(map(int, one.shape)) for one in mod["main"].params]
    for value in (-128, 127):
        arrays = [np.full(shapes[0], 255, "uint8"), np.full(shapes[1], value, "int8")]
        arrays += [np.zeros(shape, "int32") for shape in shapes[2:]]
        (sketch, *_) = sketches(mod)
        np.testing.assert_array_equal(run(sketch.program(Guess()).sch, arrays), wanted(arrays, 1))


@pytest.mark.parametrize(
    ("channels", "window", "reason"),
    [(260, (3, 3), "sums beyond 32 bits"), (16, (5, 5), "data beyond 16 bits")],
)
def test_what_might_overflow_is_summed_up_as_it_is(channels, window, reason):
    assert not sketches(convolution(8, channels, 16, window, 2)), reason


@pytest.mark.parametrize("size", [6, 9])
def test_a_trace_may_not_ask_for_what_might_overflow(size):
    with pytest.raises(ValueError, match="do not fit"):
        rewritten(convolution(8, 16, 16), f"winograd conv {size}")


def test_it_is_the_default_where_it_surely_pays():
    for mod, steps in ((convolution(28, 64, 64), 1), (convolution(7, 200, 200), 0)):
        made = default_schedule(mod, CORE)
        assert len(rewritings(made.mod["main"])) == steps


def test_so_it_is_where_signed_bytes_are_multiplied():
    for shape, steps in (((14, 128, 128), 1), ((7, 512, 512), 0)):
        made = default_schedule(convolution(*shape, kind="int8"), A53)
        assert len(rewritings(made.mod["main"])) == steps


def test_weights_are_kept_as_bytes():
    """What is made of them before a run would be seven times as large."""
    mod = convolution(28, 64, 64)
    text = default_schedule(mod, CORE).mod["main"].script()
    assert "weights" in text
    assert "layout_rewrite_preproc" not in text
