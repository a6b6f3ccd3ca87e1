"""Features of programs, which the cost model learns from."""

import random

import numpy as np
import pytest
from helpers.built import HOST
from helpers.programs import conv2d, matmul, softmax

from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import rule_set
from ansor_deploy.tune.search.features import LENGTH, Extractor
from ansor_deploy.tune.search.genome import Genome, build

RULES = rule_set((), HOST.kind)


@pytest.mark.parametrize("mod", [conv2d(8, 16, 32), matmul(12, 40, 48), softmax(5, 100)])
def test_features_of_every_kind_of_program(mod):
    extract = Extractor(HOST)
    sketches = derive(mod, HOST, RULES).sketches
    chooser = Random(random.Random(0))
    found = [build(sketches, Genome(at, ()), chooser) for at in range(len(sketches))]
    schedules = [program.sch for _, program in filter(None, found)]
    together = extract(schedules)
    # TVM's extractor has none for some programs: Winograd's, and what is cut in rows and columns.
    lowered = [pair for pair in zip(together, schedules, strict=True) if pair[0] is not None]
    assert 2 * len(lowered) > len(schedules)
    for features, schedule in lowered:
        assert features.shape[1] == LENGTH
        assert np.isfinite(features).all()
        assert np.array_equal(features, extract([schedule])[0])


def test_features_of_programs_whose_packed_weights_end_with_zeros():
    """Columns that no tile divides, on processors with vectors of any width."""
    schedule = default_schedule(matmul(8, 48, 61), HOST)
    assert "if_then_else" in str(schedule.mod)
    assert Extractor(HOST)([schedule])[0] is not None
