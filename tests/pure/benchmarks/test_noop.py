"""The benchmark of unchanged builds: in turns, and refused where something is made again."""

import sys

import pytest

from benchmarks.registry import noop

MAKES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('made')"


def test_what_is_more_than_the_empty_program_is_told(tmp_path):
    output = tmp_path / "m.so"
    output.touch()
    cases = [
        noop.Case(noop.EMPTY, (sys.executable, "-c", "pass"), tmp_path),
        noop.Case("slow", (sys.executable, "-c", "import time; time.sleep(1)"), tmp_path, output),
    ]
    empty, slow = noop.in_turns(cases, 3)
    assert (empty.name, slow.name, empty.more) == (noop.EMPTY, "slow", 0)
    assert slow.longest >= slow.seconds > slow.more > 0


def test_a_build_that_makes_its_output_again_is_no_unchanged_one(tmp_path):
    output = tmp_path / "m.so"
    case = noop.Case("frozen", (sys.executable, "-c", MAKES, str(output)), tmp_path, output)
    noop.anew(case)
    with pytest.raises(SystemExit, match="frozen: the output was made again"):
        noop.in_turns([case], 1)


def test_a_command_that_fails_ends_it(tmp_path):
    case = noop.Case("broken", (sys.executable, "-c", "raise SystemExit('why')"), tmp_path)
    with pytest.raises(SystemExit, match="why"):
        noop.anew(case)
