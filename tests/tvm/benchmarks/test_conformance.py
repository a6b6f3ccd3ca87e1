"""A sample of the node tests of the `onnx` package: a floor under what is right."""

import sys
from pathlib import Path

import pytest

from ansor_deploy.model.operators.table import OPERATORS
from benchmarks.fuzz import conformance, conformance_cases

# The workers, which import it too, get this process's path; the wheel that is tested stays first.
sys.path.append(str(Path(__file__).parents[3]))
SAMPLE = 37  # each so many-th case: a few dozen
FLOOR = 0.9  # of the cases that are meant


@pytest.fixture(scope="module")
def rows():
    return list(conformance.run(conformance.chosen(SAMPLE), jobs=2))


def test_most_of_a_sample_is_right(rows):
    assert conformance.share(rows) >= FLOOR, conformance.table(rows)


def test_none_of_a_sample_is_wrong_or_ends_the_tool(rows):
    assert [row for row in rows if row.outcome in ("wrong", "crash")] == []


@pytest.mark.slow
def test_every_operator_runs_where_there_is_the_runtime_alone():
    last = {}
    for name, case in conformance_cases.cases().items():
        if conformance_cases.counts(case):
            last[conformance_cases.operator(case)] = name
    known = {name for _, name in OPERATORS}
    rows = list(conformance.run([last[name] for name in sorted(last.keys() & known)], jobs=1))
    assert [row for row in rows if row.outcome in ("wrong", "crash")] == []
    assert len([row for row in rows if row.outcome == "right"]) >= 0.95 * len(rows)


def test_a_table_has_each_operator_once_and_the_sums(rows):
    lines = conformance.table(rows).splitlines()
    names = [line.split()[0] for line in lines[1:-1]]
    assert names == [*sorted({row.operator for row in rows}), "all", "meant"]
    assert sum(map(int, lines[-3].split()[1:])) == len(rows)


def test_a_crash_is_a_row(monkeypatch):
    monkeypatch.setattr(conformance, "SECONDS", 0.0)
    (row,) = conformance.run(["test_add"], jobs=1)
    assert (row.operator, row.outcome) == ("Add", "crash")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("test_add", True),
        ("test_reduce_l2_default_axes_keepdims_example_expanded", True),
        ("test_cast_FLOAT_to_DOUBLE", False),
        ("test_unique_sorted_without_axis", True),
        ("test_bernoulli_expanded", False),
        ("test_sequence_insert_at_back", False),
        ("test_training_dropout_default", False),
    ],
)
def test_the_goal_is_about_tensors_of_plain_types(name, meant):
    assert conformance_cases.counts(conformance_cases.cases()[name]) is meant


def test_an_expanded_case_belongs_to_its_operator():
    case = conformance_cases.cases()["test_layer_normalization_2d_axis0_expanded_ver18"]
    assert conformance_cases.operator(case) == "LayerNormalization"
