"""A part of a model has the kernels of the whole, wherever it begins and ends."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import model, node

from ansor_deploy.codegen import model as compiling
from ansor_deploy.codegen.memory.callers_memory import within
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.runtime.native import tensor

NODES = [node("Softmax", "x", "a"), node("Softmax", "a", "b"), node("Softmax", "b", "y")]


@pytest.fixture
def whole():
    """Three equal layers: imported, the tasks by function, compiled."""
    imported = built.imported(proto := model(NODES, {"x": (3, 17)}))
    tasks = extract(imported.mod, built.HOST)
    return proto, imported, tasks, compile_model(imported, tasks, {}, built.HOST)


def test_a_part_has_no_kernels_of_its_own(whole):
    proto, imported, tasks, made = whole
    part = compile_model(replace(imported, mod=within(imported.mod)), tasks, {}, built.HOST)
    assert len(made.objects) == 3  # they begin in a caller's memory, end there, or do neither
    assert len(part.objects) == 1
    assert part.objects.keys() < made.objects.keys()
    (feed,) = graphs.random_feeds(proto).values()
    np.testing.assert_array_equal(
        built.main_of(part)(tensor(feed)).numpy(), built.main_of(made)(tensor(feed)).numpy()
    )


def test_a_schedule_that_is_known_is_not_derived_again(whole, monkeypatch):
    _, imported, tasks, made = whole
    monkeypatch.setattr(compiling, "schedules", None)
    again = compile_model(imported, tasks, made.schedules, built.HOST)
    assert again.objects == made.objects
