"""A lock holds the records of a build, changes only with them, and is not trusted."""

import dataclasses
import json
import os

import pytest
from helpers.foreign import TVM, identified, parts, record
from helpers.registry_samples import TARGET, workload

from ansor_deploy.errors import MissingRecordError, RegistryError
from ansor_deploy.registry.lock_text import (
    Lock,
    LockedSplit,
    label,
    machine_of,
    read_lock,
    tasks_digest,
    write_lock,
)
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.system.digest import canonical_json

RECORDS = [record(size) for size in (1, 2, 3)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "records.lock"
    write_lock(path, TARGET, TVM, RECORDS)
    return path


def test_what_is_written_is_read(path):
    lock = read_lock(path, TARGET, TVM)
    assert lock.records == {record.key: record for record in RECORDS}
    assert lock.defaults == frozenset()
    assert [os.fspath(p.name) for p in path.parent.iterdir()] == ["records.lock"]


def test_a_build_without_records_has_a_lock_as_well(tmp_path):
    write_lock(tmp_path / "empty.lock", TARGET, TVM, [])
    assert read_lock(tmp_path / "empty.lock", TARGET, TVM) == Lock({})


def test_what_gets_the_default_schedule_is_named_too(tmp_path):
    path, defaults = tmp_path / "records.lock", [f"{n:064x}" for n in (7, 3)]
    write_lock(path, TARGET, TVM, RECORDS, defaults)
    lock = read_lock(path, TARGET, TVM)
    assert lock.defaults == set(defaults)
    assert all(lock.names(record.key) for record in RECORDS)
    assert lock.names(TaskKey(defaults[0], TARGET.fingerprint))
    assert not lock.names(TaskKey("f" * 64, TARGET.fingerprint))
    before = path.read_text()
    for fault in (f"{7:063x}", f"{2:064x}"):
        path.write_text(before + canonical_json({"default": fault}) + "\n")
        with pytest.raises(RegistryError, match=r"records\.lock:12"):
            read_lock(path, TARGET, TVM)


def test_the_splits_of_models_stand_last(path):
    tasks = tasks_digest(record.key for record in RECORDS)
    splits = [LockedSplit(tasks, "throughput", 1, 2), LockedSplit(tasks, "latency", 2, 1)]
    assert write_lock(path, TARGET, TVM, RECORDS, [f"{7:064x}"], {tasks: "net.onnx"}, splits)
    lines = path.read_text().splitlines()
    assert lines[-2] == "# net.onnx: 2 streams of 1 thread for throughput"
    lock = read_lock(path, TARGET, TVM)
    assert lock.splits == (splits[1], splits[0])
    assert lock.split(tasks, "throughput") == splits[0]
    assert lock.split("0" * 64, "throughput") is None
    assert not write_lock(path, TARGET, TVM, RECORDS, lock.defaults, lock.labels, lock.splits)
    for old, new in (('threads":1', 'threads":0'), ('streams":2', 'streams":true')):
        path.write_text("\n".join([*lines[:-1], lines[-1].replace(old, new), ""]))
        with pytest.raises(RegistryError, match="threads or streams"):
            read_lock(path, TARGET, TVM)
    for wrong in (lines[-1], lines[-1].replace("throughput", "speed"), lines[2]):
        path.write_text("\n".join([*lines, wrong, ""]))
        with pytest.raises(RegistryError, match=f"records.lock:{len(lines) + 1}: "):
            read_lock(path, TARGET, TVM)


def test_a_lock_says_what_machine_it_was_made_for(path):
    named = dataclasses.replace(TARGET, peak_gflops=1.0, memory_gbs=1.0)
    assert machine_of(path) == read_lock(path, TARGET, TVM).machine == named


def test_a_line_for_people_stands_before_each_task(tmp_path):
    path, of, default = tmp_path / "records.lock", workload(1), f"{7:064x}"
    named = {RECORDS[0].key.workload: label(of), default: "evil\x1b[2J\n{}"}
    write_lock(path, TARGET, TVM, RECORDS[:2], [default], named)
    lines = path.read_text().splitlines()
    assert "# conv2d_1 (conv2d) 1x3x224x224 64x3x7x7: 2 ms" in lines[1:5:2]
    assert f"# task {RECORDS[1].key.workload[:12]}: 2 ms" in lines[1:5:2]
    assert lines[5] == "# evil?[2J?{}: the default schedule"
    lock = read_lock(path, TARGET, TVM)
    assert lock.labels[RECORDS[0].key.workload] == label(of)
    assert not write_lock(path, TARGET, TVM, RECORDS[:2], [default], lock.labels)


def test_the_lines_for_people_count_for_nothing(path):
    told = path.read_text()
    path.write_text(told.replace("# ", "# faster than light: 1 us\n# "))
    assert read_lock(path, TARGET, TVM) == Lock({record.key: record for record in RECORDS})
    write_lock(path, TARGET, TVM, RECORDS, (), read_lock(path, TARGET, TVM).labels)
    assert path.read_text() == told


def test_an_equal_lock_is_left_alone(path):
    os.utime(path, (1, 1))
    assert not write_lock(path, TARGET, TVM, reversed(RECORDS))
    assert path.stat().st_mtime == 1
    assert write_lock(path, TARGET, TVM, RECORDS[:2])
    assert path.stat().st_mtime > 1


def test_one_changed_schedule_is_its_two_lines(path):
    before = path.read_text().splitlines()
    write_lock(path, TARGET, TVM, [record(1, 2e-3), *RECORDS[1:]])
    after = path.read_text().splitlines()
    changed = [at for at, pair in enumerate(zip(before, after, strict=True)) if len(set(pair)) > 1]
    assert len(changed) == 2
    assert changed[1] == changed[0] + 1
    assert after[changed[0]].endswith(": 4 ms")


def test_a_lock_is_for_one_target_and_one_tvm(path):
    other = dataclasses.replace(TARGET, cores=2)
    with pytest.raises(MissingRecordError) as caught:
        read_lock(path, other, TVM, "make tune")
    assert caught.value.message == f"{path}: it was made for another board; cores: 4 instead of 2"
    assert caught.value.hint.endswith(f"remove {path} and make it again: make tune")
    assert caught.value.hint.startswith("for as many cores as the lock: --target board:4; ")
    with pytest.raises(RegistryError, match=r"records\.lock:1: it is for TVM"):
        read_lock(path, TARGET, "0.28.0")


def test_a_missing_lock_is_an_error(tmp_path):
    with pytest.raises(RegistryError, match="No such file"):
        read_lock(tmp_path / "no.lock", TARGET, TVM)


def hostile(change):
    """The lock with its second line changed as JSON."""

    def spoil(text):
        lines = text.splitlines()
        entry = json.loads(lines[2])
        change(entry)
        lines[2] = identified(entry["record"])
        return "\n".join([*lines, ""])

    return spoil


EVIL = '[[["Annotate",["l1","x"],["pragma_import_llvm"],[]]],[]]'
OTHER = parts(1)["record"]["key"] | {"target": "0" * 64}
SPOILT = {
    "hostile trace": (hostile(lambda entry: entry["record"].update(trace=EVIL)), ":3: Annotate"),
    "no proof": (hostile(lambda entry: entry["record"].update(proof={})), ":3: record: no proof"),
    "foreign target": (hostile(lambda e: e["record"].update(key=OTHER)), ":3: the record is for"),
    "foreign TVM": (
        hostile(lambda entry: entry["record"]["provenance"].update(tvm="0.1.0")),
        ":3: the record was made with another TVM",
    ),
    "edited by hand": (lambda text: text.replace("0.001", "0.0001"), "is not its content's"),
    "in another order": (
        lambda text: "\n".join([text.splitlines()[n] for n in (0, 3, 4, 1, 2, 5, 6)] + [""]),
        ":5: its key is not behind",
    ),
    "a line twice": (
        lambda text: "\n".join([text.splitlines()[n] for n in (0, 1, 2, 2, 3)] + [""]),
        ":4: its key is not behind",
    ),
    "conflict markers": (
        lambda text: text.replace("\n", "\n<<<<<<< HEAD\n", 1),
        ":2: it is not JSON",
    ),
    "cut off": (lambda text: text[:-20], ":1: its end is missing"),
    "empty": (lambda text: "", ":1: its end is missing"),
    "another file": (lambda text: "hello\n", ":1: it is not a lock"),
    "newer": (lambda text: text.replace('lock":2', 'lock":3'), ":1: this ansor-deploy reads"),
    "another machine": (
        lambda text: text.replace('"cores":4', '"cores":8'),
        ":1: its machine is not its target",
    ),
    "no machine": (
        lambda text: text.replace('"name":"board"', '"name":"\\u001b[2J"'),
        ":1: machine: name must be a line of text",
    ),
    "other bytes": (lambda text: "\x1b[2J" + text, ":1: it is not a lock"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_lock_is_refused_with_its_line(path, name):
    spoil, says = SPOILT[name]
    path.write_text(spoil(path.read_text()))
    with pytest.raises(RegistryError) as caught:
        read_lock(path, TARGET, TVM)
    assert says in caught.value.message
    assert caught.value.hint
    assert caught.value.message.isascii()


def test_a_trace_that_has_passed_is_not_walked_again(path):
    """Its id covers it: an unchanged build reads a long lock in a fraction of the time."""
    path.write_text(SPOILT["hostile trace"][0](path.read_text()))
    evil = json.loads(path.read_text().splitlines()[2])["id"]
    assert evil in {one.id for one in read_lock(path, TARGET, TVM, passed={evil}).records.values()}
    path.write_text(path.read_text().replace("pragma_import_llvm", "pragma_import_c"))
    with pytest.raises(RegistryError, match="Annotate of"):
        read_lock(path, TARGET, TVM, passed={evil})
