"""What of a plan lacks a record, where a build demands one of every task that matters."""

from pathlib import Path

import pytest
from helpers.registry_samples import TARGET, key, record, workload

from ansor_deploy.errors import MissingRecordError
from ansor_deploy.model.tasks import Task
from ansor_deploy.request import Request
from ansor_deploy.tune.hits import check_hits
from ansor_deploy.tune.plan import Plan, PlanRow


def row(number, status, impact, **more):
    task = Task(f"task_{number}", key(number), workload(number), 1, mod=None)
    return PlanRow(task, status, 1e-3, impact, 0, **more)


def checked(*rows, **asked):
    request = Request(TARGET, Path("r.db"), remake="ansor-deploy tune m.onnx", **asked)
    check_hits(Plan(("m.onnx",), "board", rows, 0, 0.0), request)


def test_tasks_without_a_record_are_named_with_their_share_and_the_command():
    small, again = row(3, "skip", 0.001), row(4, "miss", 0.2, record=record(key(4), 1e-3))
    rows = (row(0, "near", 0.1), small, again, row(1, "miss", 0.299))
    checked(*rows)
    checked(small, again, require_hits=True)
    with pytest.raises(MissingRecordError) as error:
        checked(*rows, require_hits=True)
    said = "m.onnx: 2 of 4 tasks, 39.9% of the time, have no record: task_1 "
    assert error.value.message.startswith(said)
    assert "(29.9%), task_0 " in error.value.message
    assert error.value.hint == "tune them: ansor-deploy tune m.onnx"


def test_a_neighbour_may_serve_where_that_is_asked_for():
    near = row(0, "near", 0.1)
    checked(near, require_hits=True, reuse="near")
    with pytest.raises(MissingRecordError, match=r"1 of 1 task, 10\.0% of the time, has no record"):
        checked(near, require_hits=True)


def test_no_more_tasks_are_named_than_a_person_reads():
    with pytest.raises(MissingRecordError, match="and 20 more, which `plan --json` lists"):
        checked(*(row(number, "miss", 0.01) for number in range(30)), require_hits=True)
