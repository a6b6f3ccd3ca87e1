"""How much a command says: --quiet, --verbose, and the plan's next step."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ansor_deploy import cli, pipeline
from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.tune.plan import Plan


def invoke(*words):
    return CliRunner().invoke(cli.main, words)


def planned(models, request, report):
    report.stage("read", str(models[0]))
    report.warn("one thing")
    return Plan(tuple(map(str, models)), request.target.name, (), 0, 0.0)


@pytest.fixture(autouse=True)
def planning(model, monkeypatch):
    monkeypatch.setattr(pipeline, "plan", planned)


def built(model, outputs, request, report):
    report.stage("read", str(model))
    report.warn("one thing")
    raise click.Abort


@pytest.fixture
def building(monkeypatch):
    monkeypatch.setattr(pipeline, "build", built)
    monkeypatch.delenv("MAKELEVEL", raising=False)


@pytest.mark.parametrize("word", ["-q", "--quiet"])
def test_quiet_says_what_goes_wrong_alone(building, word):
    assert "[read] net.onnx" in invoke("build", "net.onnx").stderr
    said = invoke("build", "net.onnx", word).stderr.splitlines()
    assert said[0] == "warning: one thing"
    assert said[1].startswith("ansor-deploy: error: interrupted")


@pytest.mark.parametrize(("words", "said"), [((), "removed pi\n"), (("-q",), "")])
def test_a_quiet_command_does_not_tell_what_it_has_done(tmp_path, monkeypatch, words, said):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Inventory.find().put(parse_url("pi", "ssh://pi@pi.invalid", "rpi3"))
    assert invoke("devices", "remove", "pi", *words).stderr == said


@pytest.mark.parametrize("word", ["-v", "--verbose"])
def test_verbose_says_how_long_a_step_took(building, word):
    assert "read took 0." in invoke("build", "net.onnx", word).stderr
    assert "took" not in invoke("build", "net.onnx").stderr


def test_quiet_and_verbose_contradict_each_other():
    result = invoke("plan", "net.onnx", "-q", "-v")
    assert result.exit_code == 2
    assert "--quiet and --verbose contradict each other" in result.stderr


def test_a_plan_shows_progress_on_a_terminal_alone():
    assert invoke("plan", "net.onnx").stderr == "warning: one thing\n"
    assert json.loads(invoke("plan", "net.onnx", "--json", "-v").stdout)["models"] == ["net.onnx"]


def test_a_plan_ends_with_the_command_that_does_it():
    def last(*words):
        return invoke("plan", *words).stdout.splitlines()[-1].split(maxsplit=1)

    build = "ansor-deploy build net.onnx --target rpi3 --time 10m"
    assert last("net.onnx", "--target", "rpi3", "-q", "--time", "10m") == ["next", build]
    Path("b c.onnx").touch()
    tune = "ansor-deploy tune net.onnx 'b c.onnx' --trials 7"
    assert last("net.onnx", "b c.onnx", "--trials", "7") == ["next", tune]
    assert last("net.onnx", "b c.onnx", "--reuse", "near")[0] != "next"


def test_a_model_where_a_library_is_meant():
    result = invoke("bench", "net.onnx")
    assert result.exit_code == 2
    assert "net.onnx: error: this is a model, not a library\n" in result.stderr
    assert "hint: build it first: ansor-deploy build net.onnx\n" in result.stderr


def test_choices_are_one_line():
    said = invoke("completion").stderr.splitlines()
    assert said[0].endswith("Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish")
