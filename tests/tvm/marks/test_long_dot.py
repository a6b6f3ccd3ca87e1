"""Sixteen products of signed bytes at once: what a Cortex-A53 executes for them.

That the sums are right is tried on an emulated one (`tests/device/test_same_bytes.py`).
"""

import re

import numpy as np
import pytest
from helpers.built import machine_code
from helpers.graphs import node, typed

from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from benchmarks.machine import hot_loops

A53 = load_target("cortex-a53", [shipped("targets")])
EIGHT = re.compile(r"\s+sm[lu]\w+\s+v\d+\.8h")


def loops(rows, depth, columns):
    """The inner loops of a product of bytes: (instructions, products, how often to the stack)."""
    weight = (np.arange(depth * columns).reshape(depth, columns) % 255 - 127).astype(np.int8)
    product = node("MatMulInteger", "x w", "o")
    proto = typed([product], {"x": ("int8", (rows, depth))}, {"o": "int32"}, {"w": weight})
    lines = machine_code(proto, A53).splitlines()
    for _, body in hot_loops.innermost(lines):
        made = [line for line in body if hot_loops.INSTRUCTION.match(line)]
        products = 8 * sum(EIGHT.match(line) is not None for line in made)
        if products:
            yield (
                len(made),
                products,
                sum(hot_loops.STACK.search(line) is not None for line in made),
            )


@pytest.mark.parametrize("size", [(64, 256, 64), (48, 960, 160), (196, 576, 24)], ids=str)
def test_little_is_done_beside_three_instructions_for_sixteen(size):
    instructions, products, stack = max(loops(*size), key=lambda one: one[1] / one[0])
    assert instructions <= 0.23 * products
    assert not stack


@pytest.mark.parametrize("size", [(49, 960, 160), (13, 256, 20), (1, 512, 1000)], ids=str)
def test_rows_and_columns_that_no_tile_divides_are_summed_up_so_as_well(size):
    assert all(instructions < 0.32 * products for instructions, products, _ in loops(*size))
