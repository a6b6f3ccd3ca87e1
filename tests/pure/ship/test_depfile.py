"""What a build read, in words that make and Ninja understand."""

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.libraries import manifest
from helpers.registry_samples import TARGET
from msgspec.structs import replace

from ansor_deploy.errors import AnsorError
from ansor_deploy.request import Request
from ansor_deploy.ship.manifest import File
from ansor_deploy.ship.outputs.depfile import input_files, write_depfile

ODD = [
    "plain.onnx",
    "a b.onnx",
    "pri$e.onnx",
    "größe.onnx",
    "a#b.lock",
    "c:d.lock",
    "back\\ slash.toml",
]


def test_every_input_has_a_rule_of_its_own(tmp_path):
    write_depfile(tmp_path / "m.d", Path("out/m.so"), [Path("m.onnx"), Path("r.lock")])
    assert (tmp_path / "m.d").read_text() == "out/m.so: m.onnx r.lock\nm.onnx:\nr.lock:\n"


def test_an_equal_depfile_is_left_alone(tmp_path):
    path = tmp_path / "deps" / "m.d"
    write_depfile(path, Path("m.so"), [Path("m.onnx")])
    os.utime(path, (1, 1))
    write_depfile(path, Path("m.so"), [Path("m.onnx")])
    assert path.stat().st_mtime == 1
    write_depfile(path, Path("m.so"), [Path("other.onnx")])
    assert path.stat().st_mtime > 1


def test_the_registry_is_no_input(tmp_path):
    request = Request(
        TARGET,
        tmp_path / "r.db",
        lock=Path("r.lock"),
        sources=(Path("board.toml"), Path("ansor-deploy.toml")),
        rules=(Path("rule.py"),),
    )
    model = manifest().model
    external = (File("w.bin", "d" * 64),)
    said = replace(manifest(), model=replace(model, external=external))
    names = [str(path) for path in input_files(Path("in/m.onnx"), said, request.files)]
    named = ["in/m.onnx", "in/w.bin", "r.lock", "board.toml", "ansor-deploy.toml", "rule.py"]
    assert names[:6] == named
    assert [Path(name).name for name in names[6:]] == ["__init__.py", "__init__.py"]
    bare = dataclasses.replace(request, lock=None)
    assert Path("r.lock") not in input_files(Path("in/m.onnx"), said, bare.files)


@pytest.mark.parametrize("name", ["x" * 300, "a file/m.d"])
def test_a_depfile_that_cannot_be_is_named(tmp_path, name):
    (tmp_path / "a file").touch()
    with pytest.raises(AnsorError, match="the depfile cannot be written: "):
        write_depfile(tmp_path / name, Path("m.so"), [])


@pytest.mark.parametrize("changed", ODD)
def test_make_understands_it(tmp_path, changed):
    if not shutil.which("make"):
        pytest.skip("there is no make here")
    paths = [tmp_path / name for name in ODD]
    for path in paths:
        path.touch()
        os.utime(path, (1, 1))
    write_depfile(tmp_path / "deps", Path("made of $.so"), map(Path, ODD))
    (tmp_path / "Makefile").write_text("include deps\nmade\\ of\\ $$.so:\n\ttrue\n")
    (tmp_path / "made of $.so").touch()
    assert up_to_date(tmp_path)
    os.utime(tmp_path / changed)
    os.utime(tmp_path / "made of $.so", (2, 2))
    assert not up_to_date(tmp_path)
    (tmp_path / changed).unlink()  # what is gone is no error
    assert not up_to_date(tmp_path)


@pytest.mark.parametrize("name", ["w;touch${IFS}made", "w\nall:\n\ttouch made", "w\rx"])
def test_a_name_is_no_command(tmp_path, name):
    """The model names the files of its data, and make runs what stands behind a semicolon."""
    with pytest.raises(AnsorError, match="take a part of it for a command"):
        write_depfile(tmp_path / "deps", Path("m.so"), [Path("m.onnx"), Path(name)])
    assert not (tmp_path / "deps").exists()


def up_to_date(folder):
    """As make sees it; another answer than yes or no fails."""
    words = [shutil.which("make"), "-q", "made of $.so"]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stderr
    return result.returncode == 0


@pytest.mark.parametrize("changed", [name for name in ODD if "\\" not in name])
def test_ninja_understands_it(tmp_path, changed):
    if not shutil.which("ninja"):
        pytest.skip("there is no ninja here")
    for name in ODD:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1, 1))
    write_depfile(tmp_path / "deps", Path("made of $.so"), map(Path, ODD))
    (tmp_path / "build.ninja").write_text(
        "rule make\n  command = touch 'made of $$.so'; echo made\n  depfile = deps\n"
        "build made$ of$ $$.so: make\n"
    )
    ninja(tmp_path)
    assert "no work to do" in ninja(tmp_path)
    os.utime(tmp_path / changed)
    assert "made" in ninja(tmp_path)


def ninja(folder):
    words = [shutil.which("ninja")]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    return result.stdout
