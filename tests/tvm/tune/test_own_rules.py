"""A user's rules: a record names those that made it, and a wrong one makes none and is blamed."""

import json

import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import model, node

from ansor_deploy.registry.store import Registry

RULE = """\
from ansor_deploy.space import ApplyAndSkipRest
NAME, KINDS = "in-{kind}", ("llvm",)
def applies(state, block, target):
    return ApplyAndSkipRest()
def apply(state, block, target):
    rv = state.view(block).rv
    made = state.sch.cache_write(rv, 0, "global")
    state.sch.unsafe_set_dtype(rv, 0, "{kind}")
    state.choose("nothing", list(range(9)))
    state.finish(rv, made)
    return [state]
"""


@pytest.fixture
def folder(tmp_path):
    onnx.save(model([node("Sigmoid", "x", "y")], {"x": [4, 64]}), tmp_path / "net.onnx")
    return tmp_path


def words(folder, kind: str, trials: int) -> tuple:
    (folder / "mine.py").write_text(RULE.format(kind=kind))
    return ("net.onnx", "--trials", trials, "--rules", "mine.py", "--registry", "r.db")


@pytest.mark.parametrize("trials", [0, 2])
def test_a_rule_that_computes_something_else_makes_no_record_and_is_blamed(folder, trials):
    result = program(folder, "build", *words(folder, "int8", trials))
    refused(result, 6, "Sigmoid", "by in-int8, a rule of yours: correct or remove it\n")
    with Registry.open(folder / "r.db", write=False) as registry:
        assert registry.rows("SELECT id FROM records") == []


@pytest.mark.parametrize("command", ["build", "tune", "build --frozen"])
def test_a_file_that_is_no_rule_is_refused_before_the_model_is_read(folder, command):
    line = words(folder, "int8", 1)
    (folder / "mine.py").write_text('NAME = "mine"\ndef (\n')
    result = program(folder, *command.split(), *line, "--lock", "r.lock")
    refused(result, 2, "mine.py:2: error: the rule cannot be loaded: SyntaxError")
    assert "[read]" not in result.stderr


def test_records_name_the_rules_that_made_them(folder):
    program(folder, "build", *words(folder, "float32", 2))
    with Registry.open(folder / "r.db", write=False) as registry:
        rows = registry.rows("SELECT id, workload, provenance FROM records")
    assert {tuple(json.loads(row["provenance"])["derived_by"]) for row in rows} == {("in-float32",)}
    shown = program(folder, "registry", "show", rows[0]["workload"], "--registry", "r.db").stdout
    assert "  derived by\n" in shown
    assert "  in-float32\n" in shown
    page = answer(folder, "report", "net.so", "--registry", "r.db", "--time", "0.01s")
    assert page["derived"] == {rows[0]["workload"]: ["in-float32"]}
    assert "tuned: in-float32" in (folder / page["report"]).read_text()
