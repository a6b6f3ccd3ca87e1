"""What others know of a model's tasks, on machines like the target, comes into the registry."""

from dataclasses import replace

import pytest
from helpers.foreign import TVM, bundle, record, registry
from helpers.registry_samples import TARGET

from ansor_deploy.registry.exchange import push
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.layers import indexes, like
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Request
from ansor_deploy.tune.intake import take_in
from ansor_deploy.tune.ledger import Ledger
from ansor_deploy.views.plain import QuietReport

HERE = replace(TARGET, cores=2, l2_bytes=1 << 20)  # but for these as the team's machine
RECORDS = [record(size) for size in (64, 128)]
KEYS = [TaskKey(one.key.workload, HERE.fingerprint) for one in RECORDS]


@pytest.fixture
def team(tmp_path, monkeypatch):
    """The indexes of a folder that a team pushed its records to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    push(registry(tmp_path / "theirs.db", 64, 128, ended=True), str(tmp_path / "team"))
    return indexes([Layer(str(tmp_path / "team"))], print)


def test_machines_that_differ_in_cores_and_caches_alone_are_alike(team):
    assert [one.fingerprint for one in like(team, HERE, KEYS, pytest.fail)] == [TARGET.fingerprint]
    assert like(team, HERE, [], pytest.fail) == []
    assert like(team, replace(HERE, vector_bytes=32), KEYS, pytest.fail) == []
    assert like(team, HERE, [TaskKey("0" * 64, HERE.fingerprint)], pytest.fail) == []


def test_their_records_come_to_tasks_that_are_unknown(tmp_path, team):
    with Registry.open(tmp_path / "mine.db") as mine:
        mine.add_target(HERE)
        mine.add_workloads(list(bundle(64).workloads.values()))
        take_in(KEYS, Ledger(mine, Request(HERE, mine.path)), team, QuietReport())
        assert [one.fingerprint for one in mine.like(HERE)] == [TARGET.fingerprint]
        theirs = [one.key for one in RECORDS]
        found = [one.id for key in theirs for one in mine.top(key, TVM, 9)]
        assert found == [RECORDS[0].id]  # the other's workload is not known here
        assert mine.best(KEYS, TVM) == {}
