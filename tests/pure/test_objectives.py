"""Objectives: their values, their derivatives, and the words that choose them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansor_deploy import cli, pipeline
from ansor_deploy.build.result import TuneResult
from ansor_deploy.cli.tune import chosen_objective, missed_goals
from ansor_deploy.cli.values import parse_goal
from ansor_deploy.errors import UsageError
from ansor_deploy.objectives import OBJECTIVES, EarlyStop, Goal, Latency, Speedup, make_objective
from ansor_deploy.tune.scheduler import Round

LATENCIES = (2.0, 0.5, 8.0)
STEP = 1e-6
MODELS = [Path("shop/a.onnx"), Path("shop/b.onnx")]


def test_values():
    assert Latency().value(LATENCIES) == 10.5
    assert EarlyStop().value(LATENCIES) == 10.5
    assert Goal((1.0, 1.0, 1.0)).value(LATENCIES) == 11.0
    # Speed-ups of 2, 2 and 1/4 multiply to one.
    assert Speedup((4.0, 1.0, 2.0)).value(LATENCIES) == pytest.approx(-1.0)
    assert Speedup((4.0, 1.0, 16.0)).value(LATENCIES) == pytest.approx(-2.0)


@pytest.mark.parametrize(
    "objective",
    [Latency(), EarlyStop(), Goal((1.0, 1.0, 9.0)), Speedup(), Speedup((4.0, 1.0, 2.0))],
    ids=lambda objective: objective.name,
)
def test_slopes_are_the_derivatives(objective):
    for model, slope in enumerate(objective.slopes(LATENCIES)):
        less, more = list(LATENCIES), list(LATENCIES)
        less[model] -= STEP
        more[model] += STEP
        difference = (objective.value(more) - objective.value(less)) / (2 * STEP)
        assert slope == pytest.approx(difference, abs=1e-6)


def test_references_change_no_decision():
    plain, scaled = Speedup().slopes(LATENCIES), Speedup((4.0, 1.0, 3.0)).slopes(LATENCIES)
    assert [s / scaled[0] for s in scaled] == pytest.approx([s / plain[0] for s in plain])


def test_every_name_makes_its_objective():
    assert tuple(make_objective(name, [1.0]).name for name in OBJECTIVES) == OBJECTIVES


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a.onnx=5ms", ("a.onnx", 5e-3)),
        ("shop/a=b.onnx=1.5s", ("shop/a=b.onnx", 1.5)),
        ("a=250us", ("a", 250e-6)),
    ],
)
def test_goals(text, pair):
    assert parse_goal(text) == pytest.approx(pair)


@pytest.mark.parametrize("text", ["", "5ms", "=5ms", "a=5", "a=0ms", "a=-1ms", "a=5m", "a="])
def test_no_goals(text):
    with pytest.raises(Exception, match=r"write it like net.onnx=5ms"):
        parse_goal(text)


def test_without_words_it_is_the_latency():
    assert chosen_objective(None, [], MODELS) == Latency()


@pytest.mark.parametrize("name", ["shop/b.onnx", "b.onnx", "b"])
def test_a_goal_finds_its_model_and_implies_the_objective(name):
    assert chosen_objective(None, [(name, 0.5)], MODELS) == Goal((0.0, 0.5))


@pytest.mark.parametrize(
    ("name", "goals", "models", "says"),
    [
        ("goal", [], MODELS, "needs a goal"),
        ("speedup", [("a", 1.0)], MODELS, "contradict"),
        (None, [("c", 1.0)], MODELS, "no model given"),
        (None, [("a", 1.0)], [Path("x/a.onnx"), Path("y/a.onnx")], "several"),
    ],
)
def test_words_that_do_not_fit_are_refused(name, goals, models, says):
    with pytest.raises(UsageError, match=says):
        chosen_objective(name, goals, models)


def test_missed_goals_are_told():
    result = TuneResult(2, 0, 2, 0, 9, 1.0, 3.0, latencies_ms=(1.0, 2.0))
    assert missed_goals(result, Latency(), MODELS) == []
    assert missed_goals(result, Goal((0.0, 2.5e-3)), MODELS) == []
    (missed,) = missed_goals(result, Goal((0.0, 1e-3)), MODELS)
    assert missed == "shop/b.onnx takes about 2.00 ms a run, its goal is 1.00 ms"


@pytest.mark.parametrize(("goal", "code"), [("net=3ms", 0), ("net.onnx=2ms", 7)])
def test_tune_tells_every_decision_and_whether_the_goal_was_met(goal, code, tmp_path, monkeypatch):
    given = []

    def tune(models, request, report):
        given.append(request.objective)
        rounds = (Round("conv2d", "a1", 16, "first look", 1.5, 2.5),)
        return TuneResult(1, 0, 1, 0, 16, 1.0, 2.5, (2.5,), rounds)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").touch()
    monkeypatch.setattr(pipeline, "tune", tune)
    result = CliRunner().invoke(cli.main, ["tune", "net.onnx", "--goal", goal, "--json"])
    assert result.exit_code == code, result.output
    assert [objective.name for objective in given] == ["goal"]
    (decision,) = json.loads(result.stdout)["rounds"]
    assert decision == {
        "task": "conv2d",
        "key": "a1",
        "trials": 16,
        "why": "first look",
        "best_ms": 1.5,
        "end_to_end_ms": 2.5,
    }
