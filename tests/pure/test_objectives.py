"""Objectives: their derivatives, and the words that choose them."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansor_deploy import cli, pipeline
from ansor_deploy.cli.tune import chosen_objective, missed_goals
from ansor_deploy.cli.values import parse_goal
from ansor_deploy.errors import UsageError
from ansor_deploy.request import OBJECTIVES, Goal, Objective, make_objective
from ansor_deploy.tune.result import Round, TuneResult

LATENCIES = (2.0, 0.5, 8.0)
GOALS = (1.0, 1.0, 9.0)
STEP = 1e-6
MODELS = [Path("shop/a.onnx"), Path("shop/b.onnx")]


# The formulas of table 2, of the models' latencies; f4 is f1 as long as tasks improve.
FORMULAS = {
    "latency": math.fsum,
    "goal": lambda latencies: math.fsum(map(max, latencies, GOALS)),
    "speedup": lambda latencies: -(math.prod(1 / d for d in latencies) ** (1 / len(latencies))),
    "early-stop": math.fsum,
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_slopes_are_the_derivatives(name):
    slopes = make_objective(name, GOALS).slopes(LATENCIES)
    for model, slope in enumerate(slopes):
        less, more = list(LATENCIES), list(LATENCIES)
        less[model] -= STEP
        more[model] += STEP
        difference = (FORMULAS[name](more) - FORMULAS[name](less)) / (2 * STEP)
        assert slope == pytest.approx(difference, abs=1e-6)


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
    assert chosen_objective(None, [], MODELS) == Objective()


@pytest.mark.parametrize("name", ["shop/b.onnx", "b.onnx", "b"])
def test_a_goal_finds_its_model_and_implies_the_objective(name):
    assert chosen_objective(None, [(name, 0.5)], MODELS) == Goal(goals=(0.0, 0.5))


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
    times = (1.0, 2.0)
    assert missed_goals(times, Objective(), MODELS) == []
    assert missed_goals(times, Goal(goals=(0.0, 2.5e-3)), MODELS) == []
    (missed,) = missed_goals(times, Goal(goals=(0.0, 1e-3)), MODELS)
    assert missed == "shop/b.onnx takes about 2.00 ms a run, its goal is 1.00 ms"


@pytest.mark.parametrize(("goal", "code"), [("net=3ms", 0), ("net.onnx=2ms", 7)])
def test_tune_tells_every_decision_and_whether_the_goal_was_met(goal, code, tmp_path, monkeypatch):
    given = []

    def tune(models, request, report):
        given.append(request.objective)
        rounds = (Round("conv2d", "conv2d 3x3", "a1", 16, "first look", 1.5, 2.5),)
        done = {"tasks": 1, "hits": 0, "misses": 1, "skipped": 0, "trials": 16}
        spent = {"tune_seconds": 1.0, "latency_ms": 2.5, "latencies_ms": (2.5,)}
        return TuneResult(**done, **spent, rounds=rounds)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").touch()
    monkeypatch.setattr(pipeline, "tune", tune)
    result = CliRunner().invoke(cli.main, ["tune", "net.onnx", "--goal", goal, "--json"])
    assert result.exit_code == code, result.output
    assert [objective.name for objective in given] == ["goal"]
    (decision,) = json.loads(result.stdout)["rounds"]
    assert decision == {
        "task": "conv2d",
        "title": "conv2d 3x3",
        "key": "a1",
        "trials": 16,
        "why": "first look",
        "best_ms": 1.5,
        "end_to_end_ms": 2.5,
    }
