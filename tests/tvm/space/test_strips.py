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
    (rule,) = [one for one in shipped_rules("llvm") if one.name == "strip-tile"]
    state = strided(size, channels, columns)
    assert rule.applies(state, "conv2d_nhwc", TARGET) == Apply(later=not pays)
