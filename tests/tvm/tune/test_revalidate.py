"""Records of another TVM, and of other people: never used unseen, and used where they are right."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import onnx
import pytest
import tvm
from helpers.cli_inside import answer, program
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import VERSION
from ansor_deploy.devices.machine import Machine
from ansor_deploy.devices.site import LocalSite
from ansor_deploy.model.prepare import prepare
from ansor_deploy.registry.exchange import push
from ansor_deploy.registry.leases import Holder
from ansor_deploy.registry.record import Record
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Request
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from ansor_deploy.tune.sources.past import outdated, revalidate_tasks
from ansor_deploy.tune.workspace import Workspace
from ansor_deploy.views.plain import PlainReport, QuietReport

# One core: beside another process the threads of a kernel wait for each other, and its time says
# how busy the machine is.
TARGET = 'extends = "host"\ncores = 1\n'
OLD = "0.26.0"
QUICK = ("--effort", "quick")


def configure(folder, settings=""):
    """Make a folder a project of one core."""
    (folder / "targets").mkdir()
    (folder / "targets" / "one.toml").write_text(TARGET)
    (folder / "ansor-deploy.toml").write_text('target = "one"\n' + settings)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a model of one task, and a registry in which it is tuned."""
    folder = tmp_path_factory.mktemp("versions")
    configure(folder)
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    made = model(nodes, {"x": (64, 64)}, constants={"w": randn(0, 64, 64)})
    onnx.save(made, folder / "m.onnx")
    answer(folder, "tune", "m.onnx", "--registry", "tuned.db", *QUICK, "--trials", "16")
    return folder


@pytest.fixture(scope="module")
def target(shop):
    return load_target("one", [shop / "targets", shipped("targets")])


@pytest.fixture(scope="module")
def task(shop, target):
    (found,) = prepare(shop / "m.onnx", target).tasks
    return found


@pytest.fixture(scope="module")
def records(shop, task):
    with Registry.open(shop / "tuned.db", write=False) as registry:
        found = registry.top(task.key, VERSION, 9)
    assert found
    return found


@pytest.fixture
def old(shop, task, target, tmp_path):
    """A registry as another TVM left it, to be filled with records; the model lies beside it."""
    configure(tmp_path)
    (tmp_path / "m.onnx").symlink_to(shop / "m.onnx")
    with Registry.open(tmp_path / "old.db") as registry:
        registry.add_target(target)
        registry.add_workloads([task.workload])
        with Registry.open(shop / "tuned.db", write=False) as tuned:
            (end,) = tuned.ends(task.key)
        registry.add_searches([replace(end, tvm=OLD)])
        yield registry


def aged(record, **changes):
    return replace(record, provenance=replace(record.provenance, tvm=OLD), **changes)


def swapping(task):
    """A trace that reads the input transposed: legal to TVM, and another function."""
    schedule = tvm.s_tir.Schedule(task.mod)
    product, *_ = schedule.get_child_blocks(schedule.get_sblock("root"))
    schedule.transform_layout(product, ("read", 0), lambda i, j: (j, i))
    return dump(schedule.trace)


def test_a_record_of_another_tvm_serves_once_it_was_tried(old, task, records, tmp_path, target):
    # The default schedule runs beside what is tried, and on some machines nothing beats it.
    default = dump(default_schedule(task.mod, target).trace)
    records = [replace(records[0], trace=default)]
    old.add_batch([], [aged(one) for one in records])
    words = ("m.onnx", "--registry", "old.db")
    told = program(tmp_path, "plan", *words, *QUICK)
    assert "1 task to tune has records of another TVM" in told.stdout
    assert "  ansor-deploy registry revalidate m.onnx\n" in told.stdout
    untuned = answer(tmp_path, "build", *words, *QUICK, "--trials", "0", "-o", "untuned.so")
    assert (untuned["hits"], untuned["misses"]) == (0, 1)

    made = answer(tmp_path, "registry", "revalidate", *words)
    assert 1 <= made["tried"] <= 3
    assert made["right"] == made["tried"]
    (tried,) = made["tasks"]
    best = old.best([records[0].key], VERSION)[records[0].key]
    assert tried["best"] == best.id
    found = {one.trace: one.provenance.search for one in records}
    assert best.provenance.search == found[best.trace]

    planned = answer(tmp_path, "plan", *words, *QUICK)
    assert (planned["hits"], planned["stale"]) == (1, 0)
    tuned = answer(tmp_path, "build", *words, *QUICK, "-o", "tuned.so")
    assert (tuned["hits"], tuned["trials"]) == (1, 0)
    manifest = json.loads((tmp_path / "tuned.json").read_text())
    assert manifest["tasks"][0]["record"] == best.id
    again = program(tmp_path, "registry", "revalidate", *words)
    assert again.stdout == "no records of another TVM to try\n"


def test_what_is_wrong_or_does_not_replay_is_named_and_not_used(
    old, task, records, tmp_path, target
):
    misfit = dump(default_schedule(task.mod, target).trace).replace('"b0"', '"b7"')
    bad = {"wrong-output": swapping(task), "replay": misfit}
    old.add_batch([], [aged(records[0], trace=t, seconds=(1e-9,)) for t in bad.values()])
    result = program(tmp_path, "registry", "revalidate", "m.onnx", "--registry", "old.db")
    assert result.returncode == 0, result.stderr
    assert "0 of 2 records can be used again" in result.stdout
    told = " ".join(result.stderr.split())
    assert told.count("is not used") == 2
    assert "Cannot find a block with the name: b7" in told
    failed = {one.error: one.trace for one in old.measurements(target.fingerprint)}
    assert failed == bad
    assert old.best([task.key], VERSION) == {}
    made = answer(tmp_path, "registry", "revalidate", "m.onnx", "--registry", "old.db")
    assert made == {"tried": 0, "right": 0, "tasks": []}
    tuned = answer(tmp_path, "tune", "m.onnx", "--registry", "old.db", *QUICK, "--trials", "4")
    assert tuned["trials"] >= 1  # what failed is not in the way of a search


def test_the_default_schedule_beats_what_is_slower(old, task, records, tmp_path, target):
    plain = dump(tvm.s_tir.Schedule(task.mod).trace)
    default = dump(default_schedule(task.mod, target).trace)
    old.add_batch([], [aged(records[0], trace=plain)])
    made = answer(tmp_path, "registry", "revalidate", "m.onnx", "--registry", "old.db")
    assert (made["tried"], made["right"]) == (1, 1)
    assert old.best([task.key], VERSION)[task.key].trace == default
    planned = answer(tmp_path, "plan", "m.onnx", "--registry", "old.db", *QUICK)
    assert (planned["hits"], planned["misses"]) == (0, 1)


class Board(LocalSite):
    """This machine under another name."""

    remote = True

    def __init__(self):
        super().__init__(1)
        self.name = "board"


@pytest.mark.alone
def test_they_are_tried_where_the_code_will_run(old, task, records, target):
    old.add_batch([], [aged(records[0])])
    request, board = Request(target, old.path), Board()
    with closing(board):
        work = Workspace(request, QuietReport(), old, machine=Machine("board", (board,)))
        found = outdated([task], work, most=1)
        (made,) = revalidate_tasks([task], found, work)
    assert made.right == 1
    # The default schedule may have won the contest: it is a record, too.
    kept = {record.trace: record.provenance for record in old.top(task.key, VERSION, 9)}
    where = kept[records[0].trace]
    then = records[0].provenance
    assert (where.device, where.tvm) == ("board", VERSION)
    assert (where.search, where.rules) == (then.search, then.rules)
    # Where that is so, a search has to be made.
    won = made.best is not None and made.best.trace == records[0].trace
    ends = [end.reason for end in old.ends(task.key) if end.tvm == VERSION]
    assert ends == ["revalidated"] * won


def test_what_another_process_tunes_is_left_to_it(old, task, records, capsys, target):
    old.add_batch([], [aged(records[0])])
    with Registry.open(old.path) as other:
        other.lease([task.key], Holder.here())
        work = Workspace(Request(target, old.path), PlainReport(), old, machine=Machine("host"))
        found = outdated([task], work, most=1)
        assert revalidate_tasks([task], found, work) == []
    assert "is being tuned" in capsys.readouterr().err


def test_only_models_can_be_revalidated(tmp_path):
    (tmp_path / "no.onnx").write_text("no model")
    result = program(tmp_path, "registry", "revalidate", "no.onnx")
    assert result.returncode == 3


# Layers


@pytest.fixture
def project(shop, tmp_path):
    """A project whose team has the tuned records, and whose own registry has nothing."""
    push(shop / "tuned.db", str(tmp_path / "team"))
    configure(tmp_path, 'team = "team"\nregistry = "mine.db"\n')
    (tmp_path / "m.onnx").symlink_to(shop / "m.onnx")
    return tmp_path


def test_a_build_uses_the_team_s_records(project, records):
    planned = answer(project, "plan", "m.onnx", *QUICK)
    assert (planned["hits"], planned["misses"]) == (1, 0)
    assert not (project / "mine.db").exists()
    made = answer(project, "build", "m.onnx", *QUICK)
    assert (made["hits"], made["trials"], made["up_to_date"]) == (1, 0, False)
    manifest = json.loads((project / "m.json").read_text())
    with Registry.open(project / "mine.db", write=False) as registry:
        best = registry.top(records[0].key, VERSION, 1)[0]
    assert (manifest["tasks"][0]["record"], best.claimed) == (best.id, False)


def test_an_unchanged_layer_leaves_an_unchanged_build_alone(project):
    answer(project, "build", "m.onnx", *QUICK)
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ansor_deploy", "build", "m.onnx", *QUICK],
        cwd=project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert result.stdout.startswith("m.so is up to date\n")
    assert "ansor_deploy.registry.layers" in imported
    assert not {"tvm", "tvm_ffi", "onnx", "numpy", "fsspec", "cryptography"} & imported


def test_a_registry_that_is_lost_is_filled_again(project, task, target):
    made = answer(project, "build", "m.onnx", *QUICK)
    (project / "mine.db").unlink()
    with Registry.open(project / "mine.db") as registry:
        registry.add_workloads([task.workload])  # of another target, for instance
    again = answer(project, "build", "m.onnx", *QUICK)
    assert (again["trials"], again["hits"]) == (0, made["hits"])


def test_what_the_team_pushes_later_is_built_in(project, task, records, tmp_path, target):
    answer(project, "build", "m.onnx", *QUICK)
    with Registry.open(project / "mine.db", write=False) as mine:
        seconds = mine.top(task.key, VERSION, 1)[0].latency / 1.5
    best = records[0]
    faster = Record(best.key, best.trace, (seconds,), best.proof, best.provenance)
    with Registry.open(tmp_path / "other.db") as other:
        other.add_target(target)
        other.add_workloads([task.workload])
        other.add_batch([], [faster])
    push(tmp_path / "other.db", str(project / "team"))
    made = answer(project, "build", "m.onnx", *QUICK)
    assert made["up_to_date"] is False
    with Registry.open(project / "mine.db", write=False) as mine:
        lost = {name: lost for _, name, lost in mine.ranking(task.key)}
    assert lost[faster.id]  # it was tried, and what it showed counts


def test_a_damaged_layer_is_named_and_the_build_goes_on(project):
    for path in (project / "team").iterdir():
        path.unlink()
    settings = project / "ansor-deploy.toml"
    settings.write_text(settings.read_text().replace('"team"', '"team/all.jsonl"'))
    (project / "team" / "all.jsonl").write_text("no bundle")
    result = program(project, "build", "m.onnx", *QUICK, "--trials", "0")
    assert result.returncode == 0, result.stderr
    told = " ".join(result.stderr.split())
    assert told.count("team/all.jsonl is refused") == 1
    assert "it is not a bundle" in told
