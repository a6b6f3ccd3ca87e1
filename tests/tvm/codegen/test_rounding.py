"""Steps of a scale: what an addition rounds them to, from bytes to bytes without a byte between."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node
from helpers.together import Together
from tvm import te

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.passes.rounding import rounding

# Halves, of which every second is rounded down, beside what is out of range, and what is no number.
HALVES = np.arange(-700, 700, dtype=np.float32) / 2
EDGES = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 4194303.5, -0.0, 0.49999997], np.float32)
X = np.concatenate([HALVES, EDGES, np.nextafter(HALVES, np.float32(0))])


# Each once: 127 is the greatest of some.
ZEROS = {
    f"{np.dtype(kind)}-{zero}": kind(zero)
    for kind in (np.uint8, np.int8, np.uint16, np.int16)
    for zero in np.clip([0, 1, 7, 128, 255], np.iinfo(kind).min, np.iinfo(kind).max)
}


@pytest.fixture(scope="module")
def quantised():
    """X in steps of one from each zero point."""
    nodes = [node("QuantizeLinear", "x scale zero", "q"), node("Cast", "q", "y", to=1)]
    models = {
        name: model(
            nodes, {"x": X.shape}, constants={"scale": np.float32(1), "zero": zero}, opset=21
        )
        for name, zero in ZEROS.items()
    }
    return Together(models, {name: {"x": X} for name in models})


@pytest.mark.parametrize("name", ZEROS)
def test_ties_go_to_even_and_what_is_no_number_to_the_least(name, quantised):
    zero = ZEROS[name]
    ends = np.iinfo(zero.dtype)
    (have,) = quantised.outputs(name)
    wanted = np.clip(np.rint(X) + np.float32(zero), ends.min, ends.max)
    np.testing.assert_array_equal(have, np.where(np.isnan(X), ends.min, wanted))


def test_a_number_between_two_clips_is_rounded_and_never_a_byte():
    proto = model(
        [
            node("QuantizeLinear", "x fine z", "q"),
            node("DequantizeLinear", "q fine z", "d"),
            node("Add", "d y", "sum"),
            node("QuantizeLinear", "sum coarse z", "bytes"),
            node("Cast", "bytes", "out", to=1),
        ],
        {"x": X.shape, "y": X.shape},
        ["out"],
        constants={"fine": np.float32(0.5), "coarse": np.float32(3), "z": np.uint8(7)},
    )
    y = np.linspace(-300, 300, X.size, dtype=np.float32)
    (have,) = built.run(proto, {"x": X, "y": y})
    q = np.clip(np.rint(X / np.float32(0.5)) + 7, 0, 255)
    d = (np.where(np.isnan(X), 0, q) - 7).astype(np.float32) * np.float32(0.5)
    wanted = np.clip(np.rint((d + y) / np.float32(3)) + 7, 0, 255)
    np.testing.assert_array_equal(have, wanted)


def test_steps_are_multiplied_by_a_constant():
    nodes = [node("QuantizeLinear", "x fine z", "q"), node("Cast", "q", "i", to=6)]
    nodes += [node("Sub", "i seven", "s"), node("Mul", "s c", "m"), node("Cast", "m", "out", to=1)]
    constants = {"fine": np.float32(0.5), "z": np.uint8(7), "seven": np.int32(7)}
    constants |= {"c": np.int32(-100000)}
    (have,) = built.run(model(nodes, {"x": X.shape}, ["out"], constants=constants), {"x": X})
    q = np.clip(np.rint(X / np.float32(0.5)) + 7, 0, 255)
    wanted = (np.where(np.isnan(X), 0, q) - 7).astype(np.int32) * np.int32(-100000)
    np.testing.assert_array_equal(have, wanted.astype(np.float32))


def bytes_again(low, high, zero, kind):
    """A function of x that clips, narrows to a type and widens again."""
    x = te.placeholder((64,), name="x")

    def steps(at):
        moved = tirx.nearbyint(x[at]) + tirx.const(float(zero), "float32")
        clipped = tirx.max(tirx.min(moved, float(high)), float(low))
        return clipped.astype("int32").astype(kind).astype("int32").astype("float32")

    return tvm.IRModule({"main": te.create_prim_func([x, te.compute(x.shape, steps)])})


@pytest.mark.parametrize(
    ("low", "high", "kind", "kept"),
    [(0, 255, "uint8", False), (0, 256, "uint8", True), (-1, 255, "uint8", True)],
)
def test_a_byte_is_left_out_where_it_holds_every_step(low, high, kind, kept):
    made = rounding(bytes_again(low, high, 3, kind))["main"]
    narrowed = [one for one in collect(made.body, tirx.Cast) if str(one.ty.dtype) == kind]
    assert bool(narrowed) == kept


def test_what_is_not_clipped_at_both_ends_stays():
    x = te.placeholder((64,), name="x")
    steps = te.compute(x.shape, lambda i: tirx.min(tirx.nearbyint(x[i]), 9.0).astype("int32"))
    before = tvm.IRModule({"main": te.create_prim_func([x, steps])})
    assert collect(rounding(before)["main"].body, tirx.Min)
    assert not collect(rounding(before)["main"].body, tirx.Select)
