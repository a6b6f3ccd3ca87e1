"""Marks of lowering: each is a file, which is found and checked without TVM."""

import subprocess
import sys
from pathlib import Path

import pytest

from ansor_deploy import marks as room
from ansor_deploy.marks import Place, marks
from ansor_deploy.registry.instructions import check_trace
from ansor_deploy.space import rule_names
from ansor_deploy.system.digest import canonical_json
from ansor_deploy.system.untrusted import Refused

KEYS = [key for mark in marks().values() for key in mark.values]
# One of these is a value of each mark.
SAMPLES = [True, 64, "4x16"]


def annotated(variable: str, key: str, value: object) -> str:
    """A trace that annotates a block or the loop around it."""
    written = f'"{value}"' if isinstance(value, str) else value
    steps = [
        ["GetSBlock", [], ["y", "main"], ["b0"]],
        ["GetLoops", ["b0"], [], ["l1"]],
        ["Annotate", [variable, written], [key], []],
    ]
    return canonical_json([steps, []])


def test_every_file_is_a_mark_and_no_two_have_a_key():
    files = {path.stem for path in Path(room.__file__).parent.glob("*.py")} - {"__init__"}
    assert {module.rpartition(".")[2] for module in marks()} == files
    assert len(KEYS) == len(set(KEYS)) > len(Place)


@pytest.mark.parametrize("key", KEYS)
def test_the_firewall_takes_its_values_and_no_others_on_loops_alone(key):
    (check,) = (mark.values[key] for mark in marks().values() if key in mark.values)
    taken = [value for value in SAMPLES if check(value)]
    assert len(taken) == 1
    check_trace(annotated("l1", key, *taken), "llvm")
    with pytest.raises(Refused, match=key):
        check_trace(annotated("b0", key, *taken), "llvm")
    for value in set(SAMPLES) - set(taken):
        with pytest.raises(Refused, match=key):
            check_trace(annotated("l1", key, value), "llvm")


def test_rules_may_import_every_verb():
    for module, mark in marks().items():
        assert {rule_names()[verb] for verb in mark.verbs} <= {module}


def test_neither_marks_nor_what_they_are_named_to_loads_tvm():
    code = (
        "import sys; import ansor_deploy.space; import ansor_deploy.registry.instructions; "
        "from ansor_deploy.space import SIDE, turned; print('tvm' in sys.modules, SIDE)"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "8"]
