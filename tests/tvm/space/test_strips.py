"""Strips of rows are padded for a convolution whose input outweighs its weights."""

from dataclasses import replace

import pytest
from helpers import built
from helpers.programs import program
from tvm import te, topi

from ansor_deploy._tvm import tvm
from ansor_deploy.marks.partition import PARTITION
from ansor_deploy.model.operators.integer_loops import multiplied, of_lines
from ansor_deploy.model.operators.integers import Window
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import Apply, shipped_rules
from ansor_deploy.space.state import State

TARGET = replace(built.with_vectors(64, 32), cores=1, l1_bytes=48 << 10, l2_bytes=2 << 20)

(RULE,) = [one for one in shipped_rules("llvm") if one.name == "strip-tile"]


def strided(size: int, channels: int, columns: int) -> State:
    """A convolution of 3x3, stride 2, of a square image."""
    x = te.placeholder((1, size, size, channels), name="x")
    weight = te.placeholder((3, 3, channels, columns), name="weight")
    y = topi.nn.relu(topi.nn.conv2d_nhwc(x, weight, 2, 1, 1))
    return State(tvm.s_tir.Schedule(program([x, weight], y), debug_mask="none"), Guess())


@pytest.mark.parametrize(
    ("size", "channels", "columns", "pays"),
    [
        (56, 128, 128, True),
        # All weights are read once a strip, and there are more of them than of the input.
        (27, 128, 192, False),
        # They leave the second cache from strip to strip.
        (112, 256, 512, False),
    ],
)
def test_strips_are_for_few_weights(size, channels, columns, pays):
    state = strided(size, channels, columns)
    assert RULE.applies(state, "conv2d_nhwc", TARGET) == Apply(later=not pays)


@pytest.mark.parametrize(
    ("layout", "rows", "stride", "pays"),
    [
        # Each lane of a vector would ask by itself whether its column is padding.
        ("NCHW", 3, 1, True),
        ("NCHW", 1, 1, False),
        # What was padded is read two apart.
        ("NCHW", 3, 2, False),
        ("NHWC", 3, 1, False),
    ],
)
def test_strips_are_for_windows_that_slide_along_padded_columns(layout, rows, stride, pays):
    x, pad = te.placeholder((1, 16, 16, 16), name="x"), [rows // 2, 1]
    window = [[rows, 3], [stride, stride], [1, 1], [*pad, *pad]]
    y = topi.nn.relu(topi.nn.pool2d(x, *window, "max", layout=layout))
    state = State(tvm.s_tir.Schedule(program([x], y), debug_mask="none"), Guess())
    assert RULE.applies(state, "pool_max", TARGET) == Apply(later=not pays)


def of_bytes(size: int, channels: int, columns: int, taps: int) -> State:
    """A convolution of a square image of bytes, depthwise or of other channels."""
    x, zero = te.placeholder((1, size, size, channels), "uint8"), te.placeholder((), "uint8")
    window = Window((1, 1), (1, 1), (taps // 2,) * 2, (taps // 2,) * 2)
    if channels == columns:
        lines = te.placeholder((taps, 8, columns), "int8")
        y = of_lines(
            x, zero, lines, window=replace(window, after=(taps // 2 + 8 - taps, taps // 2))
        )
    else:
        lines = te.placeholder((taps, taps, channels + 1, columns), "int8")
        y = multiplied(x, zero, lines, window=window, given="int16")
    y = te.compute(y.shape, lambda *at: y(*at).astype("float32"), name="y")
    return State(tvm.s_tir.Schedule(program([x, zero, lines], y), debug_mask="none"), Guess())


def test_one_core_pads_a_small_image_once():
    (state,) = RULE.apply(of_bytes(7, 96, 96, 5), "sums", TARGET)
    (strip,) = [one.option for one in state.decisions if one.question.about == "strip"]
    assert strip == 7  # rows; of twelve lines that a row reads, eight are the next row's


def test_elements_of_an_image_that_gains_a_channel_are_copied_without_conditions():
    (state,) = RULE.apply(of_bytes(12, 3, 16, 3), "sums", built.with_vectors(32, 16))
    *_, rows, columns = state.sch.get_loops("pad")
    assert all(PARTITION in state.sch.get(loop).annotations for loop in (rows, columns))
