"""How large a space is said to be, beside the programs that are drawn from it."""

import random

import pytest
from helpers import built
from helpers.programs import PROGRAMS

from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.size import programs
from ansor_deploy.space.sketch import derive
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
