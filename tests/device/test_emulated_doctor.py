"""The doctor on an emulated Cortex-A53: another architecture, and a Python that is not ours."""

import json

from helpers.cli_inside import program
from helpers.plain_board import add_board

TARGET = 'extends = "cortex-a53"\ncores = 1\n'


def test_an_emulated_board_is_fit(board, tmp_path):
    (tmp_path / "board.toml").write_text(TARGET)
    add_board(board.sshd, "pi", str(tmp_path / "board.toml"))
    result = program(tmp_path, "devices", "doctor", "pi", "--json")
    assert result.returncode == 0, result.stdout
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    for name, says in (
        ("architecture", "aarch64"),
        ("word size", "64 bits"),
        ("libc", "glibc 2.36"),
        ("python", "3.11."),
        ("cpu features", "asimd"),
    ):
        assert (found[name]["level"], says in found[name]["found"]) == ("ok", True), found[name]
