"""How large a space is said to be, beside the programs that are drawn from it."""

import random

import pytest
from helpers import built
from helpers.programs import PROGRAMS

from ansor_deploy.space.derivation import derive, programs
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import dump

TARGET = built.with_vectors(64)
RULES = shipped_rules("llvm")


@pytest.mark.parametrize("name", ["matmul", "softmax", "pool"])
def test_no_more_programs_are_drawn_than_it_says(name):
    mod = next(make() for known, make in PROGRAMS.items() if known.startswith(name))
    drawn, rng = set(), random.Random(0)
    for sketch in derive(mod, TARGET, RULES).sketches:
        for _ in range(60):
            drawn.add(dump(sketch.program(Random(rng)).sch.trace))
    assert len(drawn) / 2 <= programs(mod, TARGET, RULES)
    assert programs(mod, TARGET, []) == 1


@pytest.mark.parametrize("name", ["conv 13x13", "conv bare", "conv transpose", "depthwise"])
def test_a_convolution_has_the_register_tile_and_a_wide_space_beside_it(name):
    first, *others = derive(PROGRAMS[name](), TARGET, RULES).sketches
    assert {step.rule.name for step in first.path} & {"register-tile", "row-tile", "transposed"}
    assert len(others) >= 2
    assert sum(sketch.size for sketch in others) >= 10**4


def test_nothing_is_derived_that_makes_no_difference():
    mod = PROGRAMS["conv 13x13"]()
    sketches = derive(mod, TARGET, RULES).sketches
    first = sketches[0].size
    assert [str(one) for one in derive(mod, TARGET, RULES, 1).sketches] == [str(sketches[0])]
    assert programs(mod, TARGET, RULES, first) == first
    assert programs(mod, TARGET, RULES, first + 1) == first + sketches[1].size
