"""The first words that somebody types: none, or a path at which there is nothing."""

import pytest
from click.testing import CliRunner

from ansor_deploy import cli


def invoke(*words):
    return CliRunner().invoke(cli.main, words)


@pytest.mark.parametrize("words", [(), ("registry",), ("lock",)])
def test_a_group_without_a_command_prints_its_help(words):
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr == invoke(*words, "--help").stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("build", "modl.onnx"), "did you mean model.onnx?"),
        (("build", "unlike"), "this folder has model.onnx, other.onnx"),
        (("plan", "."), "this folder has model.onnx, other.onnx"),
        (("bench", "out"), "out has net.so"),
        (("bench", "out/nets.so"), "did you mean out/net.so?"),
        (("bench", "gone/net.so"), "there is no folder gone"),
        (("bench", "net.so"), "this folder has no file *.so"),
    ],
)
def test_a_path_without_a_file_says_what_is_there(words, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for name in ("model.onnx", "other.onnx", "out/net.so"):
        (tmp_path / name).touch()
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"\n  hint: {hint}\n")
