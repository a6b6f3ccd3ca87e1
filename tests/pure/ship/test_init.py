"""What `init` writes, for which build system, and what it refuses; it replaces nothing."""

import os
import pty
import re
import subprocess
from pathlib import Path

import onnx
import pytest
from helpers.cli_inside import program
from helpers.cli_process import PROGRAM, everything, refused
from helpers.graphs import model, node

from ansor_deploy.ship.integrations.build_systems import SYSTEMS, Model
from ansor_deploy.ship.integrations.scaffold import parts

WRITTEN = {".gitignore", "Makefile", "ansor-deploy.toml", "app.c", "models.mk", "records.lock"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models").mkdir()
    onnx.save(model([node("Relu", "x", "y")], {"x": (2, 3)}, ["y"]), tmp_path / NAME)
    return tmp_path


NAME = "models/res net.onnx"


def init(folder, *words):
    return program(folder, "init", NAME, "--registry", folder.parent / "r.db", *words)


def test_all_is_shown_and_written(folder):
    result = init(folder, "--yes")
    assert result.returncode == 0, result.stderr
    assert {n for n in WRITTEN if f"\n  {n} " in result.stderr} == WRITTEN
    assert set(everything(folder)) == {"models", NAME} | WRITTEN
    assert "next: make && ./app\nlater, for faster schedules: make tune\n" in result.stdout
    call = "ansor_deploy_model,res_net,models/res\\ net.onnx,host,records.lock"
    assert call in (folder / "models.mk").read_text()
    assert program(folder, "targets", "list").returncode == 0  # reads the project's file


def test_again_does_nothing(folder):
    init(folder, "--yes")
    before = everything(folder)
    result = init(folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("nothing to write: all is there\n")
    assert everything(folder) == before


def test_another_machine_gets_its_library_and_no_program(folder):
    result = init(folder, "--yes", "--target", "rpi3")
    assert result.returncode == 0, result.stderr
    assert set(everything(folder)) == {"models", NAME} | WRITTEN - {"app.c"}
    assert "next: make\n" in result.stdout
    assert "app" not in (folder / "Makefile").read_text().replace("rm -rf build app app.o", "")
    assert '"rpi3"' in (folder / "ansor-deploy.toml").read_text()


@pytest.mark.parametrize("name", ["ansor-deploy.toml", "models.mk", "app.c", ".gitignore"])
def test_what_is_there_stays(folder, name):
    (folder / name).write_text("# mine\n")
    assert init(folder, "--yes").returncode == 0
    assert (folder / name).read_text() == "# mine\n"


def test_lines_for_files_that_are_there_are_printed(folder):
    (folder / "makefile").write_text("all:\n")
    (folder / ".gitignore").write_text("*.o\n")
    said = init(folder, "--yes").stdout
    told = "add to makefile:\n  include models.mk\nadd to .gitignore:\n  /build/models/\nlater"
    assert told in said


def test_a_new_build_asks_for_its_lines_in_gitignore(folder):
    (folder / ".gitignore").write_text("/build/\n")
    said = init(folder, "--yes").stdout
    assert "add to .gitignore:\n  /app\n  /app.o\nnext: make" in said


def test_a_second_model_is_a_line_to_add(folder):
    init(folder, "--yes")
    onnx.save(onnx.load(folder / NAME), folder / "other.onnx")
    said = program(folder, "init", "other.onnx").stdout
    assert "add to models.mk:\n  $(eval $(call ansor_deploy_model,other,other.onnx," in said


def test_ninja_is_tuned_for_by_the_tool_itself(folder):
    said = init(folder, "--yes", "--build", "ninja").stdout
    assert "schedules: ansor-deploy tune 'models/res net.onnx' --lock records.lock\n" in said


def test_a_lock_that_is_there_stays(folder):
    init(folder, "--yes")
    lock = (folder / "records.lock").read_bytes()
    (folder / "models.mk").unlink()
    init(folder, "--yes")
    assert (folder / "records.lock").read_bytes() == lock


def test_below_a_project_is_a_project(folder):
    (folder / "ansor-deploy.toml").write_text('target = "rpi3"\n')
    (folder / "part").mkdir()
    onnx.save(onnx.load(folder / NAME), folder / "part" / "net.onnx")
    assert program(folder / "part", "init", "--yes").returncode == 0
    assert "ansor-deploy.toml" not in everything(folder / "part")
    assert "net.onnx,rpi3," in (folder / "part" / "models.mk").read_text()


def test_nobody_to_ask(folder):
    before = everything(folder)
    result = program(folder, "init", NAME, stdin=subprocess.DEVNULL)
    refused(result, 2, "nobody to ask", f"ansor-deploy init '{NAME}' --yes")
    assert everything(folder) == before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_whoever_is_asked_decides(folder, answer, code):
    ours, theirs = pty.openpty()
    words = [*PROGRAM, "init", NAME]
    with subprocess.Popen(words, cwd=folder, stdin=theirs, stdout=subprocess.PIPE) as child:
        os.write(ours, f"{answer}\n".encode())
        child.stdout.read()
    os.close(ours)
    os.close(theirs)
    assert child.returncode == code
    assert (folder / "models.mk").exists() == (answer == "y")


def test_a_model_that_cannot_be_read_writes_nothing(folder):
    (folder / NAME).write_bytes(b"no model")
    before = everything(folder)
    refused(init(folder, "--yes"), 3, "not an ONNX file")
    assert everything(folder) == before


def test_an_unknown_target_is_refused(folder):
    refused(init(folder, "--yes", "--target", "pdp11"), 2, "pdp11")
    assert not (folder / "models.mk").exists()


def test_a_folder_without_a_model_is_refused(folder):
    refused(program(folder, "init", "--yes"), 2, "there is no ONNX file", "path/to/model.onnx")


def test_a_folder_of_several_build_systems_is_refused(folder):
    for name in ("Makefile", "CMakeLists.txt"):
        (folder / name).touch()
    refused(init(folder, "--yes"), 2, "Makefile and CMakeLists.txt", "--build make or --build")
    assert "add to CMakeLists.txt" in init(folder, "--yes", "--build", "cmake").stdout


def test_two_models_of_one_name_are_refused(folder):
    result = program(folder, "init", "--yes", NAME, _copy(folder, "res_net.onnx"))
    refused(result, 2, "would be one library, res_net")


def test_two_shapes_of_an_input_are_not_for_bazel(folder):
    shapes = ("--input-shape", "x=1,3", "--input-shape", "x=2,3")
    refused(init(folder, "--yes", "--build", "bazel", *shapes), 2, "not for Bazel")


def _copy(folder, name):
    (folder / name).write_bytes((folder / NAME).read_bytes())
    return name


@pytest.mark.parametrize(
    "name",
    ["m$(shell id>made).onnx", "a,b.onnx", "a)b.onnx", "a\nb.onnx", "a;b", "-a", "a#b", "~a"],
)
def test_a_name_that_make_reads_otherwise_is_refused(folder, name):
    (folder / name).touch()
    refused(program(folder, "init", "--yes", "--", name), 2, "cannot be given", "rename it")
    assert not (folder / "models.mk").exists()


def test_a_folder_that_no_depfile_can_name_is_refused(folder):
    """Its builds name files of the project by their whole paths."""
    odd = folder / "a;b"
    (odd / "models").mkdir(parents=True)
    _copy(folder, f"a;b/{NAME}")
    refused(init(odd, "--yes"), 2, "a;b", "rename the folder")
    assert [one.name for one in odd.iterdir()] == ["models"]


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_every_template_is_filled(tmp_path, system):
    models = [Model(Path("a.onnx"), "rpi3", ("x=1,2",)), Model(Path("app.onnx"), "b.toml")]
    for part in parts(tmp_path, system, models, "the program"):
        assert not re.search(r"@[A-Z]+@", part.text)


def test_bazel_is_told_of_weights_and_shapes(tmp_path):
    one = Model(Path("a.onnx"), "rpi3", ("x=1,2",), (Path("a.weights"),))
    text = {part.path.name: part.text for part in parts(tmp_path, SYSTEMS["bazel"], [one], "")}
    assert 'data = ["a.weights"]' in text["BUILD"]
    assert 'input_shapes = {"x": "1,2"}' in text["BUILD"]
    assert 'target = "rpi3"' in text["BUILD"]
