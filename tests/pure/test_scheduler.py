"""Which task gets the next batch of trials, and when one has had enough."""

import subprocess
import sys
from dataclasses import replace

import pytest
from registry_samples import key, workload

from ansor_deploy.model.tasks import Task
from ansor_deploy.plan import Budget
from ansor_deploy.search.scheduler import PATIENCE, Scheduler, Standing

INFINITE = float("inf")
WORN = Budget(per_task=1000, min_impact=0.0)


def task(number, weight=1):
    return Task(f"task {number}", key(number), workload(number), weight, mod=None)


def standings(*latencies, weights=None):
    weights = weights or [1] * len(latencies)
    pairs = zip(latencies, weights, strict=True)
    return [Standing(task(n, weight), best) for n, (best, weight) in enumerate(pairs)]


def names(scheduler, batches):
    """The tasks chosen, none of whose batches brings anything."""
    chosen = []
    for _ in range(batches):
        standing, _ = scheduler.next()
        standing.observe(standing.best, 1)
        chosen.append(standing.task.name)
    return chosen


def test_it_needs_no_compiler():
    program = "import sys, ansor_deploy.search.scheduler; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_every_task_is_looked_at_once_the_heaviest_first():
    scheduler = Scheduler(standings(1.0, 5.0, 2.0, weights=[4, 1, 1]), WORN, fixed=0.0)
    assert names(scheduler, 3) == ["task 1", "task 0", "task 2"]


def test_then_the_steepest_gradient_goes_first():
    slow, quick = standings(1.0, 1.0)
    for best in (8.0, 4.0):
        slow.observe(best, 16)
    for best in (8.0, 7.9):
        quick.observe(best, 16)
    # What it gained lately is little; what is left to gain is more, and counts four times.
    assert quick.gradient > slow.gradient
    quick.observe(7.9, 16)
    quick.observe(0.5, 16)
    chosen, why = Scheduler([slow, quick], WORN, fixed=0.0).next()
    assert chosen.gradient == max(slow.gradient, quick.gradient)
    assert "steepest" in why


def test_a_task_that_gained_more_is_preferred_among_equals():
    gained, stuck = standings(1.0, 1.0)
    for best in (3.0, 1.0):
        gained.observe(best, 16)
    for best in (1.001, 1.0):
        stuck.observe(best, 16)
    assert Scheduler([stuck, gained], WORN, fixed=0.0).next()[0] is gained


def test_the_weight_multiplies_the_gradient():
    light, heavy = standings(1.0, 1.0, weights=[1, 3])
    for each in (light, heavy):
        each.observe(2.0, 16)
        each.observe(1.5, 16)
    assert heavy.gradient == pytest.approx(3 * light.gradient)


def test_the_gradient_never_rises_while_nothing_is_gained():
    (standing,) = standings(1.0)
    gradients = []
    for _ in range(6):
        standing.observe(1.0, 16)
        gradients.append(standing.gradient)
    assert gradients == sorted(gradients, reverse=True)


def test_a_task_ends_when_its_patience_is_spent():
    (standing,) = standings(1.0)
    scheduler = Scheduler([standing], WORN, fixed=0.0)
    standing.observe(1.0, 1)
    for _ in range(PATIENCE):
        assert scheduler.next() is not None
        standing.observe(0.999, 1)  # better, but not by enough to count
    assert scheduler.next() is None
    assert standing.ended == "no improvement"


def test_an_improvement_restores_the_patience():
    (standing,) = standings(1.0)
    for best in (1.0, 1.0, 0.9):
        standing.observe(best, 1)
    assert standing.stale == 0
    assert standing.best == 0.9


def test_a_task_ends_at_its_limit():
    (standing,) = standings(1.0)
    scheduler = Scheduler([standing], Budget(per_task=32, min_impact=0.0), fixed=0.0)
    standing.observe(1.0, 16)
    assert scheduler.next() is not None
    standing.observe(0.5, 16)
    assert scheduler.next() is None
    assert standing.ended == "limit"


def test_a_task_ends_when_it_no_longer_matters():
    (standing,) = standings(1.0)
    scheduler = Scheduler([standing], Budget(per_task=64, min_impact=0.1), fixed=10.0)
    assert scheduler.next() is not None
    standing.observe(0.5, 16)
    assert scheduler.next() is None
    assert standing.ended == "impact"


def test_failures_leave_the_estimate_and_count_as_trials():
    (standing,) = standings(2.0)
    standing.observe(INFINITE, 16)
    assert (standing.best, standing.trials, standing.measured) == (2.0, 16, False)
    standing.observe(3.0, 16)
    assert (standing.best, standing.trials, standing.measured) == (3.0, 32, True)


def test_a_known_record_is_not_forgotten_for_a_slower_one():
    standing = replace(standings(1.0)[0], measured=True)
    standing.observe(4.0, 16)
    assert standing.best == 1.0


def test_the_end_to_end_time_counts_what_is_not_tuned():
    scheduler = Scheduler(standings(1.0, 2.0, weights=[3, 1]), WORN, fixed=0.5)
    assert scheduler.end_to_end == pytest.approx(5.5)


def test_the_trials_left_are_those_of_open_tasks():
    one, other = standings(1.0, 1.0)
    scheduler = Scheduler([one, other], Budget(per_task=32), fixed=0.0)
    one.observe(1.0, 10)
    assert scheduler.trials_left() == 54
    other.ended = "exhausted"
    assert scheduler.trials_left() == 22


def test_every_run_comes_to_an_end():
    scheduler = Scheduler(standings(1.0, 2.0, 3.0), Budget(per_task=1000), fixed=0.0)
    assert len(names(scheduler, 3 * (1 + PATIENCE))) == 9
    assert scheduler.next() is None
