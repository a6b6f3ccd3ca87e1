"""The paper's evaluation: what is asked for, what is there already, and its tables."""

import click
import pytest
from helpers.built import HOST

from ansor_deploy.measure.outcome import Outcome
from benchmarks.search import ablation, cost_model, operators, paper, results, searching, tables
from benchmarks.search.operators_te import CASES
from benchmarks.search.replay import ReplayMeasurer
from benchmarks.search.results import Bench


@pytest.fixture
def bench(tmp_path):
    """Without anything to measure with: whatever is measured again fails."""
    found = results.Results(tmp_path / "paper.jsonl", results.machine(HOST))
    return Bench(HOST, None, found, seed=0)


def fill(bench, case, ratio, ours_s, theirs_s):
    """The lines of a case that was done."""
    about = {"case": case, "trials": 4, "seed": 0}
    for engine, seconds in (("ansor", ours_s), ("metaschedule", theirs_s)):
        done = {"trials": 4, "seconds": seconds, "searching": 0.5, "finalists": []}
        bench.results.once("search", {**about, "engine": engine}, lambda done=done: done)
    times = {"ours_ms": ratio, "metaschedule_ms": 1.0, "limit_ms": ratio / 2}
    duel = {**times, "ratio": ratio, "low": ratio, "high": ratio}
    bench.results.once("operators", about, lambda: duel)


def test_cases_are_named_by_their_first_parts():
    assert paper.cases(["TBS-1"]) == ["TBS-1-b1", "TBS-1-b16"]
    assert paper.cases(["C2D-4-b16", "C2D-4"]) == ["C2D-4-b16", "C2D-4-b1"]
    assert len(paper.cases(["C2D"])) == 8
    with pytest.raises(click.BadParameter, match="no case begins with C"):
        paper.cases(["C"])


def test_a_case_that_is_done_is_not_done_again(bench):
    fill(bench, "DEP-4-b1", 0.5, 1.0, 2.0)
    again = Bench(HOST, None, results.Results(bench.results.path, bench.results.here), 0)
    assert operators.compare(again, "DEP-4-b1", 4)["ratio"] == 0.5


@pytest.fixture
def replayed(bench):
    """Programs take what a formula says, the longer their traces the longer."""
    measurer = ReplayMeasurer([], lambda task, trace: 1e-6 * len(trace))
    return Bench(HOST, measurer, bench.results, seed=0)


def test_a_search_that_is_done_is_not_done_again(bench, replayed):
    found = operators.searched(replayed, "DEP-4-b1", "ansor", 5)
    assert operators.searched(bench, "DEP-4-b1", "ansor", 5) == found
    assert found["trials"] == 5
    assert found["finalists"] == sorted(found["finalists"], key=len)


def test_programs_for_the_cost_model_are_drawn_once(bench, replayed, monkeypatch):
    monkeypatch.setattr(cost_model, "CHUNK", 4)
    task = searching.operator_task("DEP-4-b1", HOST)
    found = cost_model.measured_programs(replayed, [task], 6)
    assert len({program.trace for program in found}) == len(found) == 6
    assert max(program.throughput for program in found) == 1.0
    again = cost_model.measured_programs(bench, [task], 8)
    assert [program.latency for program in again[:6]] == [program.latency for program in found]
    assert len(again) == 8


def test_a_variant_that_is_done_is_not_done_again(bench, replayed):
    tasks = ablation._tasks("DEP-4-b1", HOST)
    held = ablation._moments(replayed, "DEP-4-b1", tasks, "random", 4)
    assert ablation._moments(bench, "DEP-4-b1", tasks, "random", 4) == held
    best = [min(map(len, one[tasks[0].key.workload])) for one in held]
    assert best == sorted(best, reverse=True)
    assert len(best) == len(ablation.MOMENTS)


def test_a_task_of_two_subjects_counts_twice():
    (task,) = ablation._tasks("DEP-4-b1+DEP-4-b1", HOST)
    assert task.weight == 2


def test_an_ablation_is_the_median_of_its_seeds(bench):
    curves = [{"full": [3.0, 2.0, 1.0], "beam": [3.0, 2.0, 2.0]}, {"full": [3.0, 2.0, 2.0]}]
    for seed, found in enumerate(curves):
        about = {"subject": "C2D-4-b16", "trials": 64, "seed": seed, "variants": list(found)}
        bench.results.once("ablation", about, lambda found=found: found)
    text = tables.report(bench.results)
    assert "| ms after trials | 16 | 32 | 64 | of the first | seeds |" in text
    assert "| full | 3.0000 | 2.0000 | 1.5000 | 1.00 | 2 |" in text
    assert "| beam | 3.0000 | 2.0000 | 2.0000 | 1.33 | 1 |" in text


def test_subjects_are_cases_and_networks():
    paper.known(["C2D-4-b16", "mobilenet_v2+resnet50"])
    with pytest.raises(click.BadParameter, match="no case or network lenet"):
        paper.known(["resnet50+lenet"])


def test_the_tables_sum_the_cases_up(bench):
    fill(bench, "C2D-1-b16", 0.8, 2.0, 4.0)
    fill(bench, "C2D-3-b1", 0.2, 2.0, 12.0)
    text = tables.report(bench.results)
    assert str(HOST.cores) in text.splitlines()[0]
    assert "2 of the paper's 96 cases" in text
    assert "geometric mean 0.400, worst 0.80 (C2D-1-b16)" in text
    assert "0.50 and 2.00, 0.25 of MetaSchedule's" in text
    assert "| C2D | 0.20 | 0.80 |" in text
    rows = [line.split(" | ")[0].strip("| ") for line in text.splitlines()]
    assert [row for row in rows if row in CASES] == ["C2D-3-b1", "C2D-1-b16"]


def test_the_fastest_of_a_run_are_those_that_ran():
    outcomes = [Outcome(f"{n}", (ms,)) for n, ms in enumerate([4.0, 5.0, 3.0, 3.0])]
    failed = Outcome("failed", error="run")
    run = searching.Run((failed, *outcomes), 3.0, 0.5)
    assert [one.trace for one in run.fastest(9)] == ["2", "3", "0", "1"]
