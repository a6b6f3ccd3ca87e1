"""What is no regular file, or is larger than any of its kind, is refused wherever one is named."""

import os
import signal
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.graphs import dense

from ansor_deploy import cli
from ansor_deploy.errors import UsageError
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.plain_arrays import load

COMMANDS = [  # each with its exit code
    ("plan {} --registry r.db", 3),
    ("build {} --registry r.db", 3),
    ("lock tasks {} -o o", 3),
    ("targets show ./{}.toml", 2),
    ("lock select {} --tasks {} -o o", 2),
    ("build net.onnx --registry r.db --lock {} --frozen", 8),
    ("rules list --rules {}", 2),
    ("registry import {}", 8),
    ("registry merge {} --registry r.db", 8),
    ("registry export o --registry r.db --sign {}", 2),
    ("registry import net.onnx --trust {}", 2),
    ("run lib.so", 1),
    ("verify lib.so", 1),
    ("@{}", 2),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with odd files, in which no command may wait for longer than a minute."""
    monkeypatch.chdir(tmp_path)
    Path("net.onnx").write_bytes(dense(8, 8).SerializeToString())
    for name in ("odd", "odd.toml", "lib.json"):
        os.mkfifo(name)
    Path("lib.so").touch()
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("words", ["plan {}", "tune {}", "build {}", "build net.onnx -o {}"])
def test_a_name_that_is_no_utf_8(words):
    """Neither a manifest nor a registry can hold it."""
    name = os.fsdecode(b"n\xff.onnx")
    os.link("net.onnx", name)
    result = CliRunner().invoke(cli.main, [word.replace("{}", name) for word in words.split()])
    assert result.exit_code == 2
    assert "is no UTF-8: rename it" in result.stderr


@pytest.mark.parametrize("words", ["history", "registry query --op", "registry forget --device"])
def test_a_word_that_no_registry_holds(words):
    """Text that SQLite cannot take is not looked for."""
    command = [*words.split(), os.fsdecode(b"n\xff"), "--registry", "r.db"]
    Registry.open(Path("r.db")).close()
    result = CliRunner().invoke(cli.main, command)
    assert result.exit_code == 2
    assert r"'n\udcff' is no UTF-8" in result.stderr


@pytest.mark.parametrize("words", [["build", "net.onnx", "-o", ""], ["plan", ""]])
def test_an_empty_name(words):
    """A variable of a script that is not set."""
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 2
    assert "the name is empty" in result.stderr


def test_a_folder_whose_name_is_no_utf_8(monkeypatch):
    """TVM could not open what lies in it."""
    folder = Path(os.fsdecode(b"d\xff"))
    folder.mkdir()
    os.link("net.onnx", folder / "net.onnx")
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(cli.main, ["plan", "net.onnx"])
    assert result.exit_code == 2
    assert "is no UTF-8: rename it" in result.stderr


@pytest.mark.parametrize(("words", "code"), COMMANDS)
def test_a_pipe_that_nobody_writes_to(words, code):
    result = CliRunner().invoke(cli.main, words.replace("{}", "odd").split())
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(("words", "code"), [c for c in COMMANDS if "{}" in c[0]])
def test_a_device_without_end(words, code):
    for name in ("odd", "odd.toml"):
        Path(name).unlink()
        Path(name).symlink_to("/dev/zero")
    result = CliRunner().invoke(cli.main, words.replace("{}", "odd").split())
    assert result.exit_code == code, result.output


def test_arrays():
    for word in ("odd", "/dev/zero"):
        with pytest.raises(UsageError, match="no regular file"):
            load(word)


def test_an_archive_that_expands_without_bound(tmp_path):
    """300 MB of zeros in 300 kB; what is packed as tightly as an image of one colour is read."""
    np.savez_compressed("even.npz", x=np.zeros((1000, 1000), np.float32))
    assert load("even.npz")["x"].shape == (1000, 1000)
    with ZipFile("bomb.npz", "w", ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as entry:
        for _ in range(300):
            entry.write(bytes(1_000_000))
    with pytest.raises(UsageError, match="would expand to 300000000 bytes"):
        load("bomb.npz")
