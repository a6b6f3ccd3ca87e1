"""A frozen build takes its lock's word, but for what no machine can have timed."""

import pytest
from helpers.registry_samples import TARGET, key, record, workload

from ansor_deploy.errors import RegistryError
from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.lock_text import Lock
from ansor_deploy.request import Request
from ansor_deploy.ship.lock import check_possible

TASKS = [Task(f"task {n}", key(n), workload(n), 1, mod=None) for n in range(3)]


def check(folder, *times):
    records = {key(n): record(key(n), seconds) for n, seconds in enumerate(times)}
    request = Request(TARGET, folder / "r.db", lock=folder / "records.lock")
    check_possible(TASKS, Lock(records), request)


def test_true_times_pass_and_so_do_default_schedules(tmp_path):
    check(tmp_path, 5e-2, 2e-3)


def test_an_impossible_time_is_named_with_its_task_and_the_lock(tmp_path):
    with pytest.raises(RegistryError, match="task 1: no machine does this in 2e-05 s") as caught:
        check(tmp_path, 5e-2, 2e-5)
    assert caught.value.file == tmp_path / "records.lock"
