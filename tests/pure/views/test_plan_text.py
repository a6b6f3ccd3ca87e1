"""A plan on a screen: what becomes of the tasks, those that matter most, and the price."""

import io
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from ansor_deploy.model.graph.places import Node, Place
from ansor_deploy.registry.record import Provenance, Record, TaskKey, Workload
from ansor_deploy.runtime.interface import Interface, TensorInfo
from ansor_deploy.tune.plan import Plan, PlanRow
from ansor_deploy.views.live import LiveReport
from ansor_deploy.views.plain import PlainReport
from ansor_deploy.views.plan import HEADER, ROWS, STYLES, details, lines

KEY = TaskKey("a" * 64, "b" * 64)
WORKLOAD = Workload("a" * 64, "", "conv2d", "conv2d", "", (), (), 1.0, 1.0)


@dataclass(frozen=True)
class Task:
    """The part of a task that a plan's text reads."""

    name: str
    weight: int
    key: TaskKey = KEY
    workload: Workload = WORKLOAD
    places: tuple[Place, ...] = ()

    @property
    def title(self):
        return self.name


def row(name, status, impact, latency=1e-3, reason=""):
    record = None
    if status == "hit" or reason:
        made = Provenance("0.1", "0.27", "metaschedule", "host", 0, "2026-01-31T00:00:00Z")
        record = Record(KEY, "[]", (latency,), {}, made)
    trials = 64 if status in ("miss", "near") else 0
    task = Task(name, 4)
    return PlanRow(task, status, latency, impact, trials, record, reason=reason, roofline=latency)


def plan_of(*rows, trials=640):
    return Plan(("net.onnx",), "host", rows, trials, 320.0)


def many(count):
    name = "conv2d_with_a_name_that_is_far_too_long_for_a_column_of_a_terminal_{}"
    rows = [row(name.format(n), "miss", 0.5 / (n + 1)) for n in range(count - 1)]
    return plan_of(*rows, row("dense", "hit", 0.9))


def said(plan, most=ROWS):
    return [line for line, _ in lines(plan, most)]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_a_plan_of_many_tasks_fits_a_screen():
    shown = said(many(300))
    assert len(shown) < 30 - 5
    assert max(map(len, shown)) <= 80
    assert shown[0] == "300 tasks of net.onnx on host"
    head = next(at for at, line in enumerate(shown) if line.startswith("key"))
    assert shown[head].split() == list(HEADER)
    first = ["aaaaaa", "dense", "x4", "90.0%", "1.00", "ms", "known", "0"]
    assert shown[head + 1].split() == first
    assert "..  " in shown[head + 2]
    assert shown[head + 1 + ROWS].startswith(f"and {300 - ROWS} more with ")


def test_all_of_a_plan_is_shown_where_it_is_asked_for():
    shown = said(many(30), None)
    assert sum("conv2d" in line for line in shown) == 29
    assert not any("more with" in line for line in shown)


def test_a_wide_terminal_shows_whole_titles(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert any("a_column_of_a_terminal_0  " in line for line in said(many(5)))


def test_tasks_are_summed_up_by_what_becomes_of_them():
    again = [row("conv", "miss", 0.1, reason=why) for why in ("more effort", "rules changed")]
    rows = [row("dense", "hit", 0.5), row("new", "miss", 0.2), row("small", "skip", 0.001)]
    shown = [line.split() for line in said(plan_of(*rows, *again, row("like", "near", 0.099)))]
    sums = {line[0]: line[1:5] for line in shown if line and line[0] in STYLES}
    assert list(sums) == ["known", "near", "again", "new", "default"]
    assert sums["known"] == ["1", "task", "50.0%", "reused:"]
    assert sums["again"] == ["2", "tasks", "20.0%", "tuned"]
    why = next(line for line in shown if line[:1] == ["again"])
    assert " ".join(why).endswith("tuned further: 1 more effort, 1 rules changed")


def test_the_price_is_trials_and_time():
    shown = said(plan_of(row("new", "miss", 1.0)))
    assert "cost     at most 640 trials, about 5m 20s" in shown
    assert "a run    about 4.00 ms, by the roofline: nothing was measured" in shown
    nothing = said(plan_of(row("dense", "hit", 1.0), trials=0))
    assert "cost     nothing to measure" in nothing
    assert "a run    about 4.00 ms, which its tasks take alone" in nothing
    rows = [row("dense", "hit", 0.6), row("new", "miss", 0.4)]
    assert any(
        line.endswith("take alone, 40.0% of that by forecast") for line in said(plan_of(*rows))
    )


def test_what_trials_may_find_is_said_where_it_is_known():
    made = plan_of(row("conv", "miss", 1.0, reason="more effort"))
    assert not any(line.startswith("room") for line in said(made))
    said_room = "room     at most 500 us of a run can be found in what is tuned further"
    assert said_room in said(replace(made, room=5e-4))


def test_a_line_says_how_much_was_known_and_from_where():
    rows = [row("a", "hit", 0.5), row("b", "near", 0.3), row("c", "miss", 0.2)]
    known = replace(rows[0], task=replace(rows[0].task, key=TaskKey("c" * 64, "b" * 64)))
    plan = replace(plan_of(known, *rows), tiers={known.task.key: "base"})
    line = "hits     2 of 4 tasks, 100.0% of the time: 1 exact, 1 shipped, 1 near"
    assert line in said(plan)


def test_near_tasks_cost_nothing_where_a_neighbour_serves():
    served = replace(row("like", "near", 1.0), trials=0)
    assert "take the schedule of one" in " ".join(said(plan_of(served)))
    assert "tuned, starting from" in " ".join(said(plan_of(row("like", "near", 1.0))))


def test_an_empty_plan_is_a_plan():
    assert said(plan_of(trials=0))[0] == "0 tasks of net.onnx on host"


def test_details_say_why_a_task_is_tuned_again():
    changed = row("dense", "miss", 0.5, reason="rules changed")
    more = row("conv", "miss", 0.4, reason="more effort")
    assert details(plan_of(more, row("new", "miss", 0.1), row("known", "hit", 0.2), changed)) == [
        "dense (aaaaaa) is tuned again: rules changed",
        "conv (aaaaaa) is tuned again: more effort",
    ]


@pytest.mark.parametrize("verbose", [False, True])
def test_a_build_shows_its_plan(verbose):
    plain = PlainReport(io.StringIO(), verbose=verbose)
    plain.plan(many(30))
    assert plain._stream.getvalue().splitlines() == said(many(30), None if verbose else ROWS)


def test_a_plan_on_a_terminal_is_not_broken():
    console = Console(file=io.StringIO(), width=80)
    LiveReport(console).plan(many(30))
    assert console.file.getvalue().splitlines() == said(many(30))


def test_a_plan_stands_below_the_steps_that_led_to_it():
    report = LiveReport(Console(file=io.StringIO(), force_terminal=True, width=80))
    report.step("tasks", 3, 30)
    report.plan(many(30))
    report.stage("tune")
    shown = report._console.file.getvalue()
    assert shown.rindex("tasks 3/30") < shown.index("30 tasks of net.onnx")


def test_a_plan_that_measures_nothing_speaks_of_no_tuning():
    rows = [
        row("a", "miss", 0.4),
        row("b", "near", 0.3),
        row("c", "miss", 0.2, reason="more budget"),
    ]
    shown = said(plan_of(*rows, trials=0))
    assert not [line for line in shown if "64" in line or line.endswith("tuned from nothing")]
    words = {line.split()[0]: line for line in shown if line}
    assert words["new"].endswith("the default schedule, untuned")
    assert words["near"].endswith("the default schedule, untuned")
    assert words["again"].endswith("reused as it is, untuned: more budget")


def test_details_say_first_what_models_take_and_give():
    x, y = TensorInfo("x", (1, 3, 8, 8), "float32"), TensorInfo("y", (1, 10), "float32")
    plan = replace(plan_of(row("conv", "miss", 0.5)), interfaces=(Interface((x,), (y,)),))
    taken = ["net.onnx takes x: float32[1, 3, 8, 8]", "  gives y: float32[1, 10]"]
    assert details(plan)[:2] == taken


def test_details_name_the_nodes_of_each_place():
    places = tuple(Place(0, (Node(f"conv{at}", "Conv"), Node(f"r{at}", "Relu"))) for at in (1, 2))
    one = row("conv2d", "miss", 0.5)
    made = plan_of(replace(one, task=replace(one.task, places=places)))
    assert details(made)[1:] == ["  Conv conv1, Relu r1", "  Conv conv2, Relu r2"]
