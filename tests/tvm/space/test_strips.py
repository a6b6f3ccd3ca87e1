"""Strips of rows are padded for a convolution whose input outweighs its weights."""

from dataclasses import replace

import pytest
from helpers import built
from helpers.programs import program
from tvm import te, topi

from ansor_deploy._tvm import tvm
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
