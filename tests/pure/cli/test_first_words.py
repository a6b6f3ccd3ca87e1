"""The first words that somebody types: none, a path at which nothing is, one that cannot be."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.cli_process import everything

from ansor_deploy import cli


def invoke(*words):
    return CliRunner().invoke(cli.main, words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the words are typed, with files that hold nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for name in ("model.onnx", "other.onnx", "out/net.so", "team-key"):
        (tmp_path / name).touch()


@pytest.mark.parametrize("words", [(), ("registry",), ("lock",)])
def test_a_group_without_a_command_prints_its_help(words):
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr == invoke(*words, "--help").stdout


def test_help_loads_no_command_and_no_view():
    command = [sys.executable, "-X", "importtime", "-m", "ansor_deploy", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "ansor_deploy.cli.errors" in imported
    others = {"msgspec", "sqlite3", "numpy", "ansor_deploy.cli.build", "ansor_deploy.views.plain"}
    assert not others & imported


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("build", "modl.onnx"), "did you mean model.onnx?"),
        (("build", "model"), "did you mean model.onnx?"),
        (("build", "unlike"), "this folder has model.onnx, other.onnx"),
        (("plan", "."), "this folder has model.onnx, other.onnx"),
        (("bench", "out"), "out has net.so"),
        (("bench", "out/nets.so"), "did you mean out/net.so?"),
        (("bench", "gone/net.so"), "there is no folder gone"),
        (("registry", "export", "all", "--sign", "team-ke"), "did you mean team-key?"),
    ],
)
def test_a_path_without_a_file_says_what_is_there(words, hint, folder):
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"\n  hint: {hint}\n")


def test_a_link_to_nothing_is_said_to_be_one(folder):
    Path("linked.onnx").symlink_to("gone.onnx")
    assert "linked.onnx is a link to gone.onnx, which is" in invoke("plan", "linked.onnx").stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("build model.onnx -o net.dll", "end it in .so: -o net.dll.so"),
        ("build model.onnx -o out/net.so/net.so", "out/net.so/net.so can be no file"),
        ("build model.onnx --report net.pdf", "end its name in .html, .md or .json"),
        ("report out/net.so -o net.pdf", "end its name in .html, .md or .json"),
        (f"report out/net.so -o {'n' * 256}", "can be no file: file name too long"),
        ("build out/net.so/net.onnx", "can be no file: not a directory"),
    ],
)
def test_a_place_where_the_output_cannot_be_is_refused_before_the_work(words, says, folder):
    result = invoke(*words.split())
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize("option", ["--by-node", "--seed 7", "--rtol 1e-3", "--input x=x.npy"])
def test_what_compares_numbers_needs_the_model(option, folder):
    result = invoke("verify", "out/net.so", *option.split())
    assert result.exit_code == 2
    assert f"{option.split()[0]} needs the model" in result.stderr


@pytest.mark.parametrize("command", ["bench out/net.so", "profile out/net.so"])
def test_more_threads_than_processors_are_refused(command, folder, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    result = invoke(*command.split(), "--threads", "3")
    assert result.exit_code == 2
    assert "--threads 3: this process may use 2 processors" in result.stderr
    assert result.stderr.endswith("\n  hint: give --threads 2, or fewer\n")


@pytest.mark.parametrize(
    "words",
    [
        "registry export r.db --registry r.db",
        "registry export r.db",  # the project's
        "registry backup ./r.db",
        "registry restore r.db --replace",
        "tune model.onnx --lock r.db",
        "run out/net.so -o out/net.so",
        "report out/net.so -o out/net.json",
        "profile out/net.so --trace out/net.so",
    ],
)
def test_no_file_of_a_command_is_written_over_another(words, folder):
    Path("ansor-deploy.toml").write_text('registry = "r.db"')
    Path("r.db").write_bytes(b"records")
    before = everything(Path())
    result = invoke(*words.split())
    assert result.exit_code == 2
    assert "error: the command uses it twice, and would write over it" in result.stderr
    assert everything(Path()) == before


def test_a_target_that_the_project_names_and_nobody_has(folder):
    Path("ansor-deploy.toml").write_text('target = "no-such"')
    said = invoke("plan", "model.onnx").stderr
    assert "ansor-deploy.toml: error: there is no target 'no-such'" in said
