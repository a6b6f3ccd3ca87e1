"""What others claim is measured here before it is shipped, and a lie costs a trial."""

import json
from dataclasses import replace

import onnx
import pytest
import tvm
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import VERSION
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import INFRASTRUCTURE, Outcome
from ansor_deploy.model.prepare import prepare
from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Budget, Request
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from ansor_deploy.tune.sources import try_out
from ansor_deploy.tune.sources.claims import Claims, prove
from ansor_deploy.tune.workspace import Workspace, open_workspace
from ansor_deploy.views.plain import PlainReport, QuietReport

# On one core: where others work beside it, a second thread is waited for, longer than a slow
# program takes on one.
HOST = load_target("host:1", [shipped("targets")])
MODEL = ("m.onnx", "--target", "host:1")
BUILD = ("build", *MODEL, "--registry", "mine.db", "--effort", "quick")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a model of one task, and a registry in which it is tuned."""
    folder = tmp_path_factory.mktemp("claims")
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    made = model(nodes, {"x": (96, 96)}, constants={"w": randn(0, 96, 96)})
    onnx.save(made, folder / "m.onnx")
    words = ("--registry", "theirs.db", "--effort", "quick", "--trials", "6")
    answer(folder, "tune", *MODEL, *words)
    return folder


@pytest.fixture(scope="module")
def task(shop):
    (found,) = prepare(shop / "m.onnx", HOST).tasks
    return found


@pytest.fixture
def folder(shop, tmp_path):
    (tmp_path / "m.onnx").symlink_to(shop / "m.onnx")
    return tmp_path


def ranking(folder, task):
    with Registry.open(folder / "mine.db", write=False) as registry:
        return registry.top(task.key, VERSION, 99)


def used(folder):
    return json.loads((folder / "m.json").read_text())["tasks"][0]["record"]


def claim(folder, shop, task, *changed):
    """Merge the best record of the other registry, each time with these changes; and no others."""
    with Registry.open(shop / "theirs.db", write=False) as theirs:
        one = theirs.top(task.key, VERSION, 1)[0]
    records = [replace(one, **changes) for changes in changed]
    when = one.provenance.created
    with Registry.open(folder / "claims.db") as registry:
        registry.add_target(HOST)
        registry.add_workloads([task.workload])
        registry.add_batch([], records)
        registry.add_searches([SearchEnd(task.key, VERSION, "ansor", 64, "limit", 1 << 30, when)])
    answer(folder, "registry", "merge", "claims.db", "--registry", "mine.db")
    return {record.id for record in records}


def poison(folder, shop, task, *times):
    """Merge records of the program as it stands, which is slow, with these times.

    times: in units of the least that is believed, which no real program comes near.
    """
    plain, least = dump(tvm.s_tir.Schedule(task.mod).trace), task.workload.least_seconds(HOST)
    made = ({"trace": plain, "seconds": (one * least,)} for one in times)
    return claim(folder, shop, task, *made)


def test_a_claim_counts_for_a_plan_and_is_measured_before_it_is_shipped(folder, shop, task):
    claim(folder, shop, task, {})
    assert [one.claimed for one in ranking(folder, task)] == [True]
    planned = answer(folder, "plan", *BUILD[1:])
    assert (planned["hits"], planned["trials"]) == (1, 0)
    result = program(folder, *BUILD, "--trials", "0")
    assert "prove" in result.stderr
    assert "1 record of others, in turns with the default" in result.stderr
    best = ranking(folder, task)[0]
    assert (best.claimed, best.id) == (False, used(folder))
    assert answer(folder, *BUILD, "--trials", "0")["up_to_date"]


def test_without_writing_a_build_takes_what_the_team_has_and_demands_that_it_has_all(folder, shop):
    words = (*MODEL, "--registry", "mine.db", "--require-hits")
    planned = program(folder, "plan", *words, "--json")
    told = json.loads(planned.stdout)
    tune = "ansor-deploy tune m.onnx --target host:1 --registry mine.db"
    assert (planned.returncode, told["tune"], told["tasks"][0]["status"]) == (5, tune, "miss")
    lacking = program(folder, "build", *words, "--no-verify")
    refused(lacking, 5, "1 of 1 task, 100.0% of the time, has no record", tune)
    refused(program(folder, "build", *words, "--time", "9s"), 2, "--require-hits tunes nothing")
    assert not (folder / "m.so").exists()

    answer(folder, "registry", "export", "team.jsonl", "--registry", shop / "theirs.db")
    (folder / "ansor-deploy.toml").write_text('team = "team.jsonl"\n')
    (folder / "mine.db").unlink()
    assert answer(folder, "plan", *words)["origins"]["team"] == 1
    made = answer(folder, "build", *words, "--read-only")
    assert (made["origins"]["team"], made["origins"]["exact"], made["trials"]) == (1, 0, 0)
    assert not (folder / "mine.db").exists()
    answer(folder, "build", *words)
    again = program(folder, "build", *words)
    assert again.stdout.splitlines()[1] == "hits     1 of 1 task, 100.0% of the time: 1 exact"


def test_after_a_lie_one_build_is_clean(folder, shop, task):
    lies = poison(folder, shop, task, 1.1, 1.2, 1.3)
    made = answer(folder, *BUILD, "--trials", "0")
    assert (made["hits"], made["misses"]) == (0, 1)  # nor is the search believed that found it
    best, *rest = ranking(folder, task)
    default = dump(default_schedule(task.mod, HOST).trace)
    assert (best.claimed, best.trace, best.id) == (False, default, used(folder))
    assert lies < {one.id for one in rest}
    least = 1.5 * task.workload.least_seconds(HOST)
    assert all(one.latency > least for one in rest if not one.claimed)
    assert answer(folder, *BUILD, "--trials", "0")["up_to_date"]
    assert answer(folder, "plan", *BUILD[1:], "--trials", "4")["trials"] == 4


def test_behind_a_lie_the_truth_is_found(folder, shop, task):
    poison(folder, shop, task, 1.1)
    answer(folder, "registry", "merge", shop / "theirs.db", "--registry", "mine.db")
    least = 1.5 * task.workload.least_seconds(HOST)
    true = {one.trace for one in ranking(folder, task) if one.latency > least}
    answer(folder, *BUILD, "--trials", "0")
    measured = {one.trace for one in ranking(folder, task) if not one.claimed}
    assert measured & true


def test_what_was_found_here_keeps_its_origin_beside_a_claim(folder, shop, task):
    poison(folder, shop, task, 1.1)
    with Registry.open(shop / "theirs.db", write=False) as theirs:
        (best,) = theirs.top(task.key, VERSION, 1)
    found = replace(best.provenance, search="metaschedule")
    ours = replace(best, seconds=(1.0,), provenance=found)
    with open_workspace(Request(HOST, folder / "mine.db"), (), QuietReport()) as work:
        work.registry.add_batch([], [ours])
        prove([task], work)
        kept = work.registry.top(task.key, VERSION, 99)
    here = [one for one in kept if one.trace == ours.trace]
    assert {one.provenance.search for one in here} == {"metaschedule"}
    assert len(here) > 1


class Broken(Measurer):
    """Loses what it has of one program."""

    def wait(self, batch, seconds=None):
        lost = Outcome(dump(tvm.s_tir.Schedule(batch.task.mod).trace), error=INFRASTRUCTURE)
        return [lost if one.trace == lost.trace else one for one in super().wait(batch, seconds)]


def test_a_claim_of_which_nothing_was_seen_stays_one(folder, shop, task):
    lies = poison(folder, shop, task, 1.1)
    request = Request(HOST, folder / "mine.db")
    with open_workspace(request, (), QuietReport()) as work, Broken(HOST) as measurer:
        try_out(Claims(task, work), measurer)
        assert {one.id for one in work.registry.top(task.key, VERSION, 9)} == lies
        assert not any(lost for *_, lost in work.registry.ranking(task.key))


def test_what_is_too_small_to_be_tried_gets_the_default_schedule(folder, shop, task):
    poison(folder, shop, task, 1.1)
    request = Request(HOST, folder / "mine.db", Budget(min_impact=1.1))
    with open_workspace(request, (), QuietReport()) as work:
        prove([task], work)
        assert work.ledger.best([task.key]) == {}
        assert work.registry.trials([task.key]) == {task.key: 0}


def test_what_cannot_be_measured_is_used_as_it_is(folder, shop, task, capsys):
    poison(folder, shop, task, 1.1)
    with Registry.open(folder / "mine.db") as registry:
        work = Workspace(Request(HOST, registry.path), PlainReport(), registry)
        prove([task], work)
        claimed = 1.1 * task.workload.least_seconds(HOST)
        assert work.ledger.best([task.key])[task.key].latency == claimed
    assert "1 record of others: used as claimed" in " ".join(capsys.readouterr().err.split())
