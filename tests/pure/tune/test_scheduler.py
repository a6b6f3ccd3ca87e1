"""Which task gets the next batch of trials, and when one has had enough."""

import subprocess
import sys
from dataclasses import replace

import pytest
from helpers.registry_samples import key, workload

from ansor_deploy.model.tasks import Task
from ansor_deploy.request import PATIENCE, Budget, Goal, Speedup, make_objective
from ansor_deploy.tune import scheduler as module
from ansor_deploy.tune.scheduler import Scheduler, TaskProgress


@pytest.fixture(autouse=True)
def _no_chance(monkeypatch):
    monkeypatch.setattr(module, "EPSILON", 0.0)


INFINITE = float("inf")
WORN = Budget(per_task=1000, min_impact=0.0)


def task(number, weight=1, weights=(), family=None):
    kind = replace(workload(number), family=family or f"family {number}")
    return Task(f"task {number}", key(number), kind, weight, None, weights)


def states(*latencies, weights=None):
    weights = weights or [1] * len(latencies)
    pairs = zip(latencies, weights, strict=True)
    return [TaskProgress(task(n, weight), best) for n, (best, weight) in enumerate(pairs)]


def names(scheduler, batches):
    """The tasks chosen, none of whose batches brings anything."""
    chosen = []
    for _ in range(batches):
        state, _ = scheduler.next()
        state.observe(state.best, 1)
        chosen.append(state.task.name)
    return chosen


def test_it_needs_no_compiler():
    program = "import sys, ansor_deploy.tune.scheduler; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_every_task_is_looked_at_once_the_heaviest_first():
    scheduler = Scheduler(states(1.0, 5.0, 2.0, weights=[4, 1, 1]), WORN, fixed=[0.0])
    assert names(scheduler, 3) == ["task 1", "task 0", "task 2"]


def test_then_the_steepest_gradient_goes_first():
    slow, quick = states(1.0, 1.0)
    for best in (8.0, 4.0):
        slow.observe(best, 16)
    for best in (8.0, 7.9):
        quick.observe(best, 16)
    scheduler = Scheduler([slow, quick], WORN, fixed=[0.0])
    # What it gained lately is little; what is left to gain is more, and counts four times.
    assert scheduler.gradient(quick) > scheduler.gradient(slow)
    quick.observe(7.9, 16)
    quick.observe(0.5, 16)
    chosen, why = scheduler.next()
    assert scheduler.gradient(chosen) == max(map(scheduler.gradient, [slow, quick]))
    assert "steepest" in why


def test_a_task_that_gained_more_is_preferred_among_equals():
    gained, stuck = states(1.0, 1.0)
    for best in (3.0, 1.0):
        gained.observe(best, 16)
    for best in (1.001, 1.0):
        stuck.observe(best, 16)
    assert Scheduler([stuck, gained], WORN, fixed=[0.0]).next()[0] is gained


def test_the_weight_multiplies_the_gradient():
    light, heavy = states(1.0, 1.0, weights=[1, 3])
    for each in (light, heavy):
        each.observe(2.0, 16)
        each.observe(1.5, 16)
    scheduler = Scheduler([light, heavy], WORN, fixed=[0.0])
    assert scheduler.gradient(heavy) == pytest.approx(3 * scheduler.gradient(light))


def test_the_gradient_never_rises_while_nothing_is_gained():
    (state,) = states(1.0)
    gradients = []
    for _ in range(6):
        state.observe(1.0, 16)
        gradients.append(state.gain())
    assert gradients == sorted(gradients, reverse=True)


def test_a_task_ends_when_its_patience_is_spent():
    (state,) = states(1.0)
    scheduler = Scheduler([state], WORN, fixed=[0.0])
    state.observe(1.0, 1)
    for _ in range(PATIENCE):
        assert scheduler.next() is not None
        state.observe(0.999, 1)  # better, but not by enough to count
    assert scheduler.next() is None
    assert state.ended == "no improvement"


def test_an_improvement_restores_the_patience():
    (state,) = states(1.0)
    for best in (1.0, 1.0, 0.9):
        state.observe(best, 1)
    assert state.stale == 0
    assert state.best == 0.9


def test_a_task_ends_at_its_limit():
    (state,) = states(1.0)
    scheduler = Scheduler([state], Budget(per_task=32, min_impact=0.0), fixed=[0.0])
    state.observe(1.0, 16)
    assert scheduler.next() is not None
    state.observe(0.5, 16)
    assert scheduler.next() is None
    assert state.ended == "limit"


def at_limit(best, least, **more):
    """A task that was measured once, and what ends it."""
    state = TaskProgress(task(0), 1.0, least=least, **more)
    scheduler = Scheduler([state], WORN, fixed=[0.0])
    state.observe(best, 16)
    scheduler.next()
    return state.ended


def test_no_trial_is_spent_where_nothing_is_left_to_find():
    assert at_limit(1.0, 0.96) == "nothing to find"
    assert at_limit(1.0, 0.94) == ""
    assert at_limit(1.0, 0.96, asked=True) == ""  # by name
    assert at_limit(INFINITE, 0.96) == ""  # of an estimate nobody knows how good it is


def test_no_batch_is_hoped_to_gain_more_than_there_is():
    near, far = TaskProgress(task(0), 1.0, least=0.9), TaskProgress(task(1), 0.5, least=0.1)
    for state in (near, far):
        state.observe(state.best, 16)
    assert near.gain() == pytest.approx(0.1)
    assert names(Scheduler([near, far], WORN, fixed=[0.0]), 1) == ["task 1"]


def test_a_task_ends_when_it_no_longer_matters():
    (state,) = states(1.0)
    scheduler = Scheduler([state], Budget(per_task=64, min_impact=0.1), fixed=[10.0])
    assert scheduler.next() is not None
    state.observe(0.5, 16)
    assert scheduler.next() is None
    assert state.ended == "impact"


def test_failures_leave_the_estimate_and_count_as_trials():
    (state,) = states(2.0)
    state.observe(INFINITE, 16)
    assert (state.best, state.trials, state.measured) == (2.0, 16, False)
    state.observe(3.0, 16)
    assert (state.best, state.trials, state.measured) == (3.0, 32, True)


def test_a_known_record_is_not_forgotten_for_a_slower_one():
    state = replace(states(1.0)[0], measured=True)
    state.observe(4.0, 16)
    assert state.best == 1.0


def test_the_end_to_end_time_counts_what_is_not_tuned():
    scheduler = Scheduler(states(1.0, 2.0, weights=[3, 1]), WORN, fixed=[0.5])
    assert scheduler.end_to_end == pytest.approx(5.5)


def test_the_trials_left_are_those_of_open_tasks():
    one, other = states(1.0, 1.0)
    scheduler = Scheduler([one, other], Budget(per_task=32), fixed=[0.0])
    one.observe(1.0, 10)
    assert scheduler.trials_left() == 54
    other.ended = "exhausted"
    assert scheduler.trials_left() == 22


def test_every_run_comes_to_an_end():
    scheduler = Scheduler(states(1.0, 2.0, 3.0), Budget(per_task=1000), fixed=[0.0])
    assert len(names(scheduler, 3 * (1 + PATIENCE))) == 9
    assert scheduler.next() is None


# The formula


def test_the_past_is_averaged_over_the_window():
    (state,) = states(1.0)
    for best in (9.0, 8.0, 6.0, 3.0, 2.0):
        state.observe(best, 16)
    # Three batches brought (8 - 2) / 3 each; the fifth part of 2 is what optimism expects.
    assert state.gain() == pytest.approx(0.2 * 2.0 + 0.8 * 2.0 / 5)


def test_earlier_runs_count_as_batches():
    fresh, resumed = (
        TaskProgress(task(0), 1.0),
        TaskProgress(task(0), 1.0, trials=64, measured=True),
    )
    for each in (fresh, resumed):
        each.observe(1.0, 16)
    assert fresh.gain() == pytest.approx(0.8)
    assert resumed.gain() == pytest.approx(0.8 / 5)


def similar(slow_best):
    """Two tasks of one family with as many FLOPs, at 1 s and at `slow_best` s, equally worn."""
    pair = [TaskProgress(task(n, family="same"), 1.0) for n in range(2)]
    for state, best in zip(pair, (1.0, slow_best), strict=True):
        for _ in range(4):
            state.observe(best, 16)
            state.stale = 0
    return Scheduler(pair, WORN, fixed=[0.0])


def test_a_task_slower_than_its_like_has_more_to_gain():
    scheduler = similar(10.0)
    quick, slow = scheduler.states
    # From 10 s to twice the 1 s of its like, not only by the fourth part that time would take.
    assert scheduler.gradient(slow) == pytest.approx(0.8 * (10.0 - 2.0))
    assert scheduler.gradient(quick) == pytest.approx(0.8 * 0.25)
    assert "like it" in scheduler.next()[1]


def test_within_beta_of_its_like_nothing_changes():
    scheduler = similar(2.0)
    slow = scheduler.states[1]
    assert scheduler.gradient(slow) == pytest.approx(slow.gain())


def test_an_estimate_is_no_example():
    scheduler = similar(10.0)
    quick, slow = scheduler.states
    quick.measured = False
    assert scheduler.gradient(slow) == pytest.approx(slow.gain())


def test_now_and_then_a_task_is_chosen_at_random(monkeypatch):
    monkeypatch.setattr(module, "EPSILON", 0.3)

    def choices(seed):
        steep, flat = states(100.0, 1.0)
        for each in (steep, flat):
            each.observe(each.best, 1)
        scheduler = Scheduler([steep, flat], WORN, fixed=[0.0], seed=seed)
        return [scheduler.next()[0].task.name for _ in range(50)]

    assert {"task 0", "task 1"} == set(choices(0))
    assert choices(0).count("task 0") > choices(0).count("task 1")
    assert choices(0) == choices(0) != choices(1)


# Objectives and several models


def two_models(objective, latencies=(4.0, 1.0), fixed=(0.0, 0.0)):
    """A task each of two models, after a first look."""
    weights = [(1, 0), (0, 1)]
    pair = [TaskProgress(task(n, 1, w), 1.0) for n, w in enumerate(weights)]
    for state, best in zip(pair, latencies, strict=True):
        state.observe(best, 16)
    return Scheduler(pair, WORN, fixed, objective)


def test_each_model_has_its_own_latency():
    scheduler = Scheduler(
        [TaskProgress(task(0, 5, (2, 3)), 1.0), TaskProgress(task(1, 1, (0, 1)), 4.0)],
        WORN,
        [0.5, 0.25],
    )
    assert scheduler.latencies == (2.5, 7.25)
    assert scheduler.end_to_end == pytest.approx(9.75)


def test_speed_ups_count_the_same_for_slow_and_quick_models():
    scheduler = two_models(Speedup())
    slow, quick = map(scheduler.gradient, scheduler.states)
    assert slow == pytest.approx(quick)


def test_a_task_whose_model_has_reached_its_goal_is_left():
    scheduler = two_models(Goal(goals=(5.0, 0.5)))
    chosen, _ = scheduler.next()
    assert chosen.task.name == "task 1"
    assert [s.ended for s in scheduler.states] == ["goal", ""]


def test_when_every_goal_is_reached_the_run_ends():
    assert two_models(Goal(goals=(5.0, 1.0))).next() is None


def test_a_goal_is_not_reached_on_estimates():
    scheduler = Scheduler(states(1.0, 1.0), WORN, [0.0], Goal(goals=(5.0,)))
    assert scheduler.next()[1] == "first look"


def test_early_stopping_leaves_a_task_at_its_first_stale_batch():
    scheduler = two_models(make_objective("early-stop"))
    for state in scheduler.states:
        state.observe(state.best, 16)
    assert scheduler.next() is None
    assert {s.ended for s in scheduler.states} == {"early stop"}


def test_latency_is_more_patient():
    scheduler = two_models(None)
    for state in scheduler.states:
        state.observe(state.best, 16)
    assert scheduler.next() is not None
