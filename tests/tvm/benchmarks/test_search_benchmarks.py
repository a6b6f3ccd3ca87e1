"""The arithmetic of the search benchmarks, on numbers that are known."""

import math

import numpy as np
from helpers import programs
from helpers.built import HOST

from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from benchmarks.search import ablation, cost_model, reuse, spaces


def test_a_perfect_prediction_ranks_every_pair():
    actual = np.array([0.1, 0.5, 1.0, 0.2])
    groups = ["a", "a", "a", "b"]
    assert cost_model.pairwise(actual * 2, actual, groups) == 1.0
    assert cost_model.pairwise(-actual, actual, groups) == 0.0
    assert cost_model.pairwise(actual, actual, ["a", "b", "c", "d"]) == 0.5


def test_a_model_that_learns_is_better_than_guessing():
    rng = np.random.default_rng(0)
    programs = []
    for number in range(200):
        rows = rng.random((1, 164)).astype("float32")
        latency = 1e-3 / (0.1 + rows[0, 3])
        programs.append(cost_model.Program("task", str(number), latency, rows, 1e-3 / latency))
    quality = cost_model.evaluate(programs, seed=0)
    assert (quality["trained"], quality["tested"]) == (160, 40)
    assert quality["pairwise"] > 0.8


def test_what_was_best_is_read_at_the_last_batch():
    run = [(trials, {"task": [f"after {trials}"]}) for trials in (1, 2, 18)]
    held = [ablation._held(run, trials)["task"][0] for trials in (2, 17, 18, 99)]
    assert held == ["after 2", "after 2", "after 18", "after 18"]


def test_variants_leave_out_rules_that_there_are():
    every = {rule.name for rule in ablation.shipped_rules("llvm")}
    for name, variant in ablation.VARIANTS.items():
        assert set(variant.without) <= every, name


def test_a_variants_searches_have_its_options():
    for variant in ablation.VARIANTS.values():
        assert ablation._context(variant, HOST, [], 0).options == variant.options
    changed = {name for name, one in ablation.VARIANTS.items() if one.options != ablation.FULL}
    assert changed == {
        name
        for name in ablation.VARIANTS
        if any(word in name for word in ("random", "crossover", "draft"))
    }


def outcomes(*milliseconds):
    return [Outcome(f"trace {n}", (ms * 1e-3,)) for n, ms in enumerate(milliseconds)]


def test_what_a_build_would_ship_is_the_default_or_one_of_the_best_few():
    held = reuse._held(outcomes(4, 3, 2, 1, 5), "default")
    assert held[0] == ["default", "trace 0"]
    assert held[-1] == ["default", "trace 3", "trace 2", "trace 1"]
    assert len(held) == 5


def test_the_trials_to_a_goal_are_counted_from_one():
    assert reuse.reached([4.0, 3.0, 3.0], 3.0) == 2
    assert reuse.reached([4.0, 3.0], 2.9) is None


def row(cold, model, near):
    trials = {"cold": cold, "model": model, "near": near}
    return reuse.Row("conv2d", 1.0, 0, trials, 1.0, 1.0, dict.fromkeys(trials, 1.0))


def test_a_search_that_never_got_there_counts_as_all_its_trials():
    found = reuse.means([row(10, 8, 2), row(30, 20, None)], 64)
    assert found == {"cold": 20, "model": 14, "near": 33}


def test_what_ran_in_turns_is_judged_by_that():
    space = spaces.Space({"a": 1.0, "b": 1.1, "c": spaces.FAILED}, {"a": 1.2})
    assert [space.judged(trace) for trace in "abc"] == [1.2, 1.1, math.inf]
    assert [space.outcome(trace).latency for trace in "abc"] == [1.0, 1.1, math.inf]


def test_the_programs_of_a_space_differ_and_the_default_schedule_is_the_first():
    task = task_of(programs.softmax(16, 96)["main"], "softmax", HOST)
    found = spaces.programs(task, HOST, 12, 0)
    assert found[0] == dump(default_schedule(task.mod, HOST).trace)
    assert len(set(found)) == len(found) > 2
