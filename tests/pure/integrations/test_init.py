"""A folder becomes a project by files that are shown first and replace nothing."""

import os
import pty
import shutil
import subprocess
import sys

import pytest
from helpers.cli_inside import program
from helpers.cli_process import PROGRAM, everything, refused

WRITTEN = [".gitignore", "ansor-deploy.toml", "models.mk"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "res net.onnx").touch()
    (tmp_path / ".gitignore").write_text("*.o")
    (tmp_path / "Makefile").write_text("all:\n")
    return tmp_path


def init(folder, *words):
    return program(folder, "init", "models/res net.onnx", *words)


def test_all_is_shown_and_written(folder):
    result = init(folder, "--yes", "--target", "rpi3")
    assert (result.returncode, result.stderr) == (0, "")
    assert [n for n in WRITTEN if f" {n}:\n" in result.stdout] == WRITTEN
    assert "include models.mk" in result.stdout
    assert (folder / ".gitignore").read_text() == "*.o\n# made by ansor-deploy\n/build/models/\n"
    assert (folder / "Makefile").read_text() == "all:\n"
    call = "ansor_deploy_model,res_net,models/res\\ net.onnx,rpi3,records.lock"
    assert call in (folder / "models.mk").read_text()
    assert '"rpi3"' in (folder / "ansor-deploy.toml").read_text()
    assert program(folder, "targets", "list").returncode == 0  # reads the project's file


def test_again_does_nothing(folder):
    init(folder, "--yes")
    before = everything(folder)
    result = init(folder, "--yes", "--target", "rpi3")
    assert (result.returncode, result.stdout) == (0, "nothing to do: all is there\n")
    assert everything(folder) == before


@pytest.mark.parametrize("name", ["ansor-deploy.toml", "models.mk"])
def test_what_is_there_stays(folder, name):
    (folder / name).write_text("# mine\n")
    assert init(folder, "--yes").returncode == 0
    assert (folder / name).read_text() == "# mine\n"


def test_below_a_project_is_a_project(folder):
    init(folder, "--yes")
    (folder / "part").mkdir()
    assert program(folder / "part", "init", "--yes").returncode == 0
    assert sorted(everything(folder / "part")) == [".gitignore", "models.mk"]


def test_nobody_to_ask(folder):
    before = everything(folder)
    result = program(folder, "init", stdin=subprocess.DEVNULL)
    refused(result, 2, "nobody to ask", "--yes")
    assert everything(folder) == before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_whoever_is_asked_decides(folder, answer, code):
    ours, theirs = pty.openpty()
    words = [*PROGRAM, "init"]
    with subprocess.Popen(words, cwd=folder, stdin=theirs, stdout=subprocess.PIPE) as child:
        os.write(ours, f"{answer}\n".encode())
        child.stdout.read()
    os.close(ours)
    os.close(theirs)
    assert child.returncode == code
    assert (folder / "models.mk").exists() == (answer == "y")


def test_an_unknown_target_is_refused(folder):
    refused(init(folder, "--yes", "--target", "pdp11"), 2, "pdp11")
    assert not (folder / "models.mk").exists()


@pytest.mark.parametrize(
    "name",
    ["m$(shell id>made).onnx", "a,b.onnx", "a)b.onnx", "a\nb.onnx", "a;b", "-a", "a#b", "~a"],
)
def test_a_name_that_make_reads_otherwise_is_refused(folder, name):
    (folder / name).touch()
    refused(program(folder, "init", "--yes", "--", name), 2, "make cannot be given", "Rename it")
    assert not (folder / "models.mk").exists()


def test_make_reads_it(folder):
    if not (make := shutil.which("make")):
        pytest.skip("there is no make here")
    init(folder, "--yes")
    (folder / "Makefile").write_text("include models.mk\nall: $(res_net_LIBRARY)\n")
    tool = folder / "ansor-deploy"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ansor_deploy "$@"\n')
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    result = subprocess.run(
        [make, "-n", "all"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "build models/res\\ net.onnx" in result.stdout
