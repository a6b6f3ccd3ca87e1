"""Candidates built by the processes of a real Dask cluster."""

import os

import pytest
from helpers import programs

from ansor_deploy.errors import DeviceError
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system import cluster as dask_cluster
from ansor_deploy.system.cluster import open_farm
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

TARGET = load_target("host", [shipped("targets")])


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster  # loads all of Dask

    workers = {"n_workers": 1, "threads_per_worker": 1, "processes": True}
    with LocalCluster(**workers, dashboard_address=None) as made:
        yield made


def task_and_trace():
    task = task_of(programs.conv2d(8, 16, 16)["main"], "conv2d", TARGET)
    return task, dump(default_schedule(task.mod, TARGET).trace)


def test_candidates_are_built_there_and_run_here(cluster):
    task, trace = task_and_trace()
    with open_farm(cluster.scheduler_address, print) as executor:
        assert executor.submit(os.getpid).result() != os.getpid()
        with Measurer(TARGET, executor=executor) as measurer:
            good, bad = measurer.measure(task, [trace, "no trace"])
    assert good.error == ""
    assert good.proof["oracle"] == "default"
    assert bad.error == "build"


def test_a_farm_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    address = "tcp://127.0.0.1:1"
    with pytest.raises(DeviceError, match=f"{address} does not answer"), open_farm(address, print):
        pass


def test_a_farm_of_another_version_is_refused():
    with pytest.raises(DeviceError, match=r"of the farm has apache-tvm 0\.27;"):
        dask_cluster._check_versions(
            "tcp://farm", {"worker": {**dask_cluster.versions(), "apache-tvm": "0.27"}}
        )
