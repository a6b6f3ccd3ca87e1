"""Of a lock, what one model's tasks need: `lock select`, and command lines in files."""

import os
from dataclasses import replace

import pytest
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.foreign import TVM, record
from helpers.registry_samples import TARGET

from ansor_deploy.registry.lock_text import read_lock, write_lock
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.ship.lock import NamedTask, TaskList
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

RECORDS = [record(size) for size in (1, 2, 3)]
DEFAULTS = [f"{n:064x}" for n in (3, 7)]
SELECT = ("lock", "select", "all.lock", "--tasks", "tasks", "-o", "own.lock")
BOARD = ("--target", "board.toml")


@pytest.fixture
def folder(tmp_path):
    told = {name: value for name, value in TARGET.to_json().items() if value and name != "name"}
    lines = [f"{name} = {value!r}\n" for name, value in told.items()]
    (tmp_path / "board.toml").write_text("".join(lines))
    write_lock(tmp_path / "all.lock", TARGET, TVM, RECORDS, DEFAULTS)
    return tmp_path


def tasks(folder, *keys):
    named = [NamedTask(f"task{n}", key.workload, key.target) for n, key in enumerate(keys)]
    TaskList(str(folder / "net.onnx"), tuple(named)).write(folder / "tasks")


def default(number):
    return TaskKey(DEFAULTS[number], TARGET.fingerprint)


def select(folder):
    return program(folder, *SELECT, *BOARD)


def test_what_the_tasks_need_is_selected(folder):
    tasks(folder, RECORDS[1].key, default(0))
    result = select(folder)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    own = read_lock(folder / "own.lock", TARGET, TVM)
    assert own.records == {RECORDS[1].key: RECORDS[1]}
    assert own.defaults == {DEFAULTS[0]}


def test_other_lines_do_not_show(folder):
    tasks(folder, RECORDS[1].key, default(0))
    assert select(folder).returncode == 0
    before = (folder / "own.lock").read_bytes()
    write_lock(folder / "all.lock", TARGET, TVM, RECORDS[1:], DEFAULTS[:1])
    assert select(folder).returncode == 0
    assert (folder / "own.lock").read_bytes() == before


def test_a_lock_of_one_model_is_selected_whole(folder):
    tasks(folder, *(one.key for one in RECORDS), default(0), default(1))
    assert select(folder).returncode == 0
    assert (folder / "own.lock").read_bytes() == (folder / "all.lock").read_bytes()


def test_a_task_that_is_missing_is_named(folder):
    tasks(folder, RECORDS[0].key, TaskKey("f" * 64, TARGET.fingerprint))
    refused(select(folder), 5, "all.lock: error: it lacks 1 of the 2 tasks", "task1 ffffffffffff")
    assert not (folder / "own.lock").exists()


def test_what_is_no_list_of_tasks_is_refused(folder):
    for text in ("", "[]", '{"model": "m", "tasks": [["a"]]}', '{"tasks": []}'):
        (folder / "tasks").write_text(text)
        refused(select(folder), 2, "not a list of tasks")


def test_words_may_stand_in_a_file(folder):
    tasks(folder, RECORDS[1].key)
    (folder / "words").write_bytes(os.fsencode("\n".join(SELECT[2:])))
    result = program(folder, *SELECT[:2], "@words", *BOARD)
    assert result.returncode == 0, result.stderr
    assert (folder / "own.lock").exists()
    refused(program(folder, *SELECT[:2], "@nothing", "--tasks", "tasks"), 2, "@nothing")


def test_a_lock_of_another_host_is_selected_from_on_this_one(tmp_path):
    """Which tasks there are was found on this host: where they are the same, its lock serves."""
    here = load_target("host", [shipped("targets")])
    theirs = replace(here, l2_bytes=here.l2_bytes * 2)
    write_lock(tmp_path / "all.lock", theirs, TVM, [], DEFAULTS)
    tasks(tmp_path, TaskKey(DEFAULTS[0], here.fingerprint))
    result = program(tmp_path, *SELECT)
    assert (result.returncode, result.stderr) == (0, "")
    own = read_lock(tmp_path / "own.lock", theirs, TVM)
    assert own.defaults == {DEFAULTS[0]}
    tasks(tmp_path, TaskKey("f" * 64, here.fingerprint))
    refused(program(tmp_path, *SELECT), 5, "it lacks 1 of the 1 tasks")
