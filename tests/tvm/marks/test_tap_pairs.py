"""Taps of depthwise convolutions of bytes, two at a time: what a Cortex-A53 executes for them.

That the sums are right is tried on an emulated one (`tests/device/test_same_bytes.py`).
"""

import re

import numpy as np
import pytest
from helpers.built import machine_code
from helpers.graphs import node, typed

from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

A53 = load_target("cortex-a53", [shipped("targets")])


def code(weight, **given):
    """The machine code of a depthwise convolution of 14 x 14 pixels."""
    channels = len(weight)
    taps = node("ConvInteger", "x w", "o", group=channels, **given)
    x = {"x": ("int8", (1, channels, 14, 14))}
    proto = typed([taps], x, {"o": "int32"}, {"w": weight})
    return machine_code(proto, A53)


@pytest.mark.parametrize(("taps", "stride"), [(3, 1), (3, 2), (5, 1)])
def test_two_taps_are_added_up_before_they_are_widened(taps, stride):
    weight = np.ones((64, 1, taps, taps), np.int8)
    made = code(weight, pads=[taps // 2] * 4, strides=[stride] * 2)
    first, more, wide = (
        len(re.findall(rf"\s{name}2?\s+v\d+\.", made)) for name in ("smull", "smlal", "sadd[wl]")
    )
    assert more > 0.6 * first
    assert 0 < wide <= 2 * first
    assert "fmla" not in made


def test_a_weight_of_the_least_byte_is_none_of_them():
    weight = np.full((64, 1, 3, 3), -128, np.int8)
    assert "smlal" not in code(weight, pads=[1] * 4)
