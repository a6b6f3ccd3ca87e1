"""Rows that are gone and that others refer to are brought back, or said not to be."""

import json
import sqlite3
from contextlib import closing

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.foreign import bundle, registry
from helpers.registry_samples import TARGET, build, fill, key, measurement, record, workload

from ansor_deploy.project import Project
from ansor_deploy.registry.exchange import export_file
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.layers import bring_in, indexes
from ansor_deploy.registry.restore import restore
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import take_in
from ansor_deploy.system.digest import canonical_json
from ansor_deploy.target import load_target

pytestmark = pytest.mark.usefixtures("cache")

MODEL = "ab" * 32


@pytest.fixture
def path(tmp_path):
    """A registry with a hundred records of twenty tasks of one model, and a build of it."""
    with Registry.open(tmp_path / "registry.db") as store:
        fill(store, 100)
        store.add_model(MODEL, "resnet", [(key(n), 1) for n in range(20)])
    return tmp_path / "registry.db"


def add_build(path, target=TARGET, **changed):
    said = {**target.to_json(), "fingerprint": target.fingerprint, **changed}
    with Registry.open(path) as store:
        store.add_build(build(path, MODEL, "2026-01-31", manifest={"target": said}))


def lose(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def rows(path, table):
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute(f"SELECT * FROM {table}"))  # noqa: S608


def complaints(path):
    with Registry.open(path) as store:
        return store.verify()


def test_a_target_is_in_the_manifest_of_a_build(path):
    add_build(path)
    before = rows(path, "targets")
    lose(path, "DELETE FROM targets")
    again = restore(path)
    assert (again.restored, again.lacking) == ({"targets": 1}, ())
    assert rows(path, "targets") == before
    assert complaints(path) == []


def test_of_a_frozen_build_a_target_comes_back_without_its_figures(path):
    """As one that others have sent, until a build gives it both."""
    add_build(path, peak_gflops=None, memory_gbs=None)
    lose(path, "DELETE FROM targets")
    assert restore(path).restored == {"targets": 1}
    ((fingerprint, name, text),) = rows(path, "targets")
    assert (fingerprint, name) == (TARGET.fingerprint, TARGET.cpu)
    assert "peak_gflops" not in json.loads(text)
    with Registry.open(path) as store:
        store.add_target(TARGET)
    assert {row[1] for row in rows(path, "targets")} == {TARGET.name}


@pytest.mark.parametrize("changed", [{"cores": 2}, {"cores": "four"}, {"cpu": "\x1b"}])
def test_a_manifest_of_another_target_brings_nothing_back(path, changed):
    add_build(path, **changed)
    lose(path, "DELETE FROM targets")
    again = restore(path)
    assert again.restored == {}
    (lack,) = again.lacking
    assert (lack.table, lack.key) == ("targets", TARGET.fingerprint)
    assert lack.waiting == {"builds": 1, "measurements": 100, "model_tasks": 20, "records": 100}


def test_a_target_is_among_those_that_are_declared(tmp_path):
    pi = load_target("rpi3", Project().target_path())
    where = type(key())(workload().key, pi.fingerprint)
    with Registry.open(tmp_path / "registry.db") as store:
        store.add_target(pi)
        store.add_workloads([workload()])
        store.add_batch([measurement(where)], [record(where, 1e-3)])
    lose(tmp_path / "registry.db", "DELETE FROM targets")
    assert restore(tmp_path / "registry.db").lacking == ()
    ((fingerprint, name, _),) = rows(tmp_path / "registry.db", "targets")
    assert fingerprint == pi.fingerprint
    assert load_target(name, Project().target_path()).fingerprint == fingerprint


def asked_of(layer, path):
    """The index of a layer that was asked for what a registry has."""
    (index,) = indexes([Layer(str(layer))], pytest.fail)
    with Registry.open(path) as store:
        bring_in([index], [one.key for one in bundle(64, 128).records.values()], store, pytest.fail)
    return index


def test_workloads_are_in_the_index_of_a_layer(tmp_path):
    mine = registry(tmp_path / "mine.db", 64, 128)
    export_file(mine, tmp_path / "team.jsonl")
    asked_of(tmp_path / "team.jsonl", mine)
    before = rows(mine, "workloads")
    lose(mine, "DELETE FROM targets", "DELETE FROM workloads")
    assert restore(mine).restored == {"targets": 1, "workloads": 2}
    assert rows(mine, "workloads") == before
    assert take_in(mine, bundle(64, 128)).records == 0
    assert complaints(mine) == []


def test_a_changed_copy_brings_nothing_back(tmp_path):
    mine = registry(tmp_path / "mine.db", 64, 128)
    export_file(mine, tmp_path / "team.jsonl")
    index = asked_of(tmp_path / "team.jsonl", mine)
    lose(index, "UPDATE workloads SET text = (SELECT trace FROM records LIMIT 1)")
    lose(mine, "DELETE FROM workloads")
    again = restore(mine)
    assert again.restored == {}
    assert len(again.lacking) == 2


def test_models_come_back_by_the_names_of_their_builds(path):
    add_build(path)
    lose(path, "DELETE FROM models")
    assert restore(path).restored == {"models": 1}
    assert rows(path, "models") == {(MODEL, "resnet.onnx")}
    lose(path, "DELETE FROM models", "DELETE FROM builds")
    assert restore(path).restored == {"models": 1}
    assert rows(path, "models") == {(MODEL, MODEL[:12])}


def test_comparisons_and_leases_go_with_what_they_are_of(path):
    with Registry.open(path) as store:
        one, two, *_ = store.top(key(), "0.27.0", 9)
        store.add_contest(two, [one.id], "2026-01-31T12:00:00Z")
    lose(
        path,
        f"DELETE FROM records WHERE id = '{one.id}'",  # noqa: S608
        "INSERT INTO leases VALUES ('w', 't', 'nobody')",
    )
    assert complaints(path)
    assert restore(path).lacking == ()
    assert complaints(path) == []


def test_the_command_says_what_came_back_and_what_did_not(path):
    add_build(path)
    words = ("registry", "verify", "--registry", path)
    lose(path, "DELETE FROM targets", "DELETE FROM workloads WHERE name = 'conv2d_3'")
    refused(program(path.parent, *words), 8, "lack their targets", "lack their workloads")
    said = program(path.parent, *words, "--repair")
    assert said.returncode == 0
    assert "brought back: targets 1" in said.stdout
    assert f"not brought back: workloads {key(3).workload[:12]}" in said.stdout
    assert "measurements 5" in said.stdout
    assert "next build of resnet" in said.stdout
    assert not path.with_name(f"{path.name}.damaged").exists()  # nothing was damaged
    again = answer(path.parent, *words, "--repair")
    assert (again["ok"], again["repaired"], again["restored"]) == (False, None, {})
    assert [lack["key"] for lack in again["lacking"]] == [key(3).workload]
    with Registry.open(path) as store:  # as a build of its model does
        store.add_workloads([workload(3)])
    assert program(path.parent, *words).stdout == f"{path} is whole\n"


def test_what_a_damaged_file_has_lost_is_brought_back_too(path):
    add_build(path)
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT pageno FROM dbstat WHERE name = 'targets' AND pagetype = 'leaf'"
        ((page,),) = connection.execute(sql).fetchall()
    whole = bytearray(path.read_bytes())
    whole[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(whole)
    found = answer(path.parent, "registry", "verify", "--registry", path, "--repair")
    assert found["ok"]
    assert found["repaired"]["kept"]["records"] == 100
    assert found["repaired"]["lost"]["model_tasks"] == 0
    assert found["restored"] == {"targets": 1}
    assert rows(path, "targets") == {
        (TARGET.fingerprint, TARGET.name, canonical_json(TARGET.to_json()))
    }
