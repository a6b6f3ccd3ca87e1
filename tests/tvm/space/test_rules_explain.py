"""What rules say about real tasks, and what is left of a task when a rule misbehaves."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import built
from helpers.built import HOST
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn
from helpers.programs import PROGRAMS

from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.derivation import MAX_SKETCHES, derive
from ansor_deploy.space.question import Decided, Guess
from ansor_deploy.space.rule import before_shipped, load_rule, shipped_rules
from ansor_deploy.tune.search import open_search
from ansor_deploy.tune.search.context import SearchContext

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rules" / "serial_small.py"
SMALL = model([node("Add", "x x", "y")], {"x": [4, 64]})
HEAD = """\
from ansor_deploy.space import Apply, ApplyAndSkipRest, Pass
NAME, KINDS = "mine", ("llvm",)
"""
APPLIES = "def applies(state, block, target): {}\n"
APPLY = "def apply(state, block, target): {}\n"
GOOD = APPLY.format("return [state]")


def applying(body):
    """A rule that applies, and then does this."""
    return APPLIES.format("return Apply()") + APPLY.format(body)


# What a rule does wrong, and what is then said of it.
BAD = {
    "applies raises": (APPLIES.format("1 / 0") + GOOD, "raised ZeroDivisionError"),
    "applies says nothing": (APPLIES.format("pass") + GOOD, "answered None"),
    "applies says yes": (APPLIES.format("return True") + GOOD, "answered True"),
    "applies names a class": (APPLIES.format("return Apply") + GOOD, "answered <class"),
    "apply raises": (applying("state.block('absent').x"), ""),
    "apply confuses types": (
        applying("state.sch.split('i', [None, 4])"),
        "raised TypeError: Mismatched type on argument #1",
    ),
    "apply derives nothing": (applying("pass"), "derived None"),
    "apply derives text": (applying("return 'state'"), "derived 'state'"),
    "apply derives schedules": (applying("return [state.sch]"), "derived ["),
    "apply raises later": (applying("raise KeyError(block)"), "raised KeyError"),
    "always again": (applying("return [state.again()]"), "again without end"),
    "again and again twice": (
        applying("return [state.copy().again(), state.again()]"),
        "again without end",
    ),
}


@pytest.fixture
def shop(tmp_path):
    """A folder with a model of a convolution, a product and a small addition."""
    constants = {"w": randn(0, 16, 8, 3, 3), "b": randn(1, 16), "v": randn(2, 16, 10)}
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "g"),
        node("Flatten", "g", "f"),
        node("MatMul", "f v", "y"),
    ]
    onnx.save(model(nodes, {"x": [1, 8, 12, 12]}, constants=constants), tmp_path / "m.onnx")
    return tmp_path


def rules_with(folder, text):
    path = folder / "mine.py"
    path.write_text(HEAD + text)
    return before_shipped([load_rule(path)], "llvm")


def same_result(name, candidate):
    plain = built.loop_outputs(PROGRAMS[name]())
    for have, want in zip(built.loop_outputs(candidate.sch.mod), plain, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4)


@cache
def without(name):
    """The sketches of a program by the shipped rules."""
    return [str(one) for one in derive(PROGRAMS[name](), HOST, shipped_rules("llvm")).sketches]


@pytest.mark.parametrize(("turn", "what"), list(enumerate(BAD)))
def test_a_bad_rule_is_named_and_the_rest_is_as_without_it(tmp_path, turn, what):
    """Of two programs in turns."""
    text, says = BAD[what]
    name = ("conv residual", "softmax odd")[turn % 2]
    found = derive(PROGRAMS[name](), HOST, rules_with(tmp_path, text))
    assert [str(sketch) for sketch in found.sketches] == without(name)
    if what != "apply raises":  # TVM's own complaint is a misfit, not a fault
        (fault,) = found.faults
        assert "mine" in fault
        assert says in fault


def test_a_misfit_is_an_answer_and_no_fault(tmp_path):
    text = BAD["apply raises"][0]
    found = derive(PROGRAMS["add"](), HOST, rules_with(tmp_path, text))
    assert found.faults == []
    assert any(v.rule == "mine" and v.text.startswith("does not fit") for v in found.answers)


def test_a_rule_that_fails_late_leaves_no_trace_of_itself(tmp_path):
    """It has been applied at the output before it raises further up."""
    text = (
        "seen = []\n"
        + APPLIES.format("seen.append(block); return Apply()")
        + APPLY.format("assert block == seen[0]; return [state]")
    )
    found = derive(PROGRAMS["conv residual"](), HOST, rules_with(tmp_path, text))
    assert len(found.faults) == 1
    assert found.sketches
    assert not any("mine" in str(sketch) for sketch in found.sketches)


def test_a_rule_that_fails_under_some_choices_only_is_a_misfit(tmp_path):
    text = APPLIES.format("return ApplyAndSkipRest()") + APPLY.format(
        "state.choose('parallel', [1, 0]) or {}['x']; return [state]"
    )
    found = derive(PROGRAMS["add"](), HOST, rules_with(tmp_path, text))
    (sketch,) = found.sketches
    decided = [replace(d, index=1) for d in sketch.program(Guess()).decisions]
    with pytest.raises(ValueError, match="the rule mine raised KeyError"):
        sketch.program(Decided(decided, Guess()))


def test_the_search_warns_of_a_bad_rule(tmp_path):
    warnings = []
    context = SearchContext(
        HOST, rules_with(tmp_path, BAD["apply raises later"][0]), warn=warnings.append
    )
    (task,) = extract(built.imported(SMALL).mod, HOST).values()
    search = open_search("ansor", task, [], context)
    assert search.propose(2)
    assert len(warnings) == 1
    # In the words of the compiler, so that both are shown as one.
    assert warnings[0].startswith(f"task {task.name}: the rule mine raised KeyError")


def test_two_bad_rules_are_both_left_out(tmp_path):
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(HEAD + BAD["applies raises"][0])
    other.write_text((HEAD + BAD["always again"][0]).replace('"mine"', '"other"'))
    found = derive(
        PROGRAMS["add"](), HOST, before_shipped([load_rule(one), load_rule(other)], "llvm")
    )
    assert len(found.faults) == 2
    assert found.sketches


def test_a_rule_that_branches_without_end_is_cut_off(tmp_path):
    text = APPLIES.format("return Apply()") + APPLY.format("return [state.copy() for _ in '123']")
    found = derive(PROGRAMS["softmax odd"](), HOST, rules_with(tmp_path, text))
    assert 0 < len(found.sketches) <= MAX_SKETCHES


def test_explain_prints_sketches_and_answers(shop):
    found = answer(shop, "rules", "explain", "m.onnx")
    (conv,) = [task for task in found["tasks"] if task["op"] == "conv2d"]
    assert sum(sketch["programs"] for sketch in conv["sketches"]) > 10**4
    assert conv["faults"] == []
    by_block = {block["block"]: block for block in conv["blocks"]}
    assert any(block["reduced"] == [3, 3, 8] for block in by_block.values())
    (output, *_) = conv["blocks"]
    said = {verdict["rule"]: verdict["text"] for verdict in output["verdicts"]}
    assert said["always-inline"] == "passes: it is an output"


def test_explain_fits_a_terminal(shop):
    result = program(shop, "rules", "explain", "m.onnx")
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "sketches, the default first:" in result.stdout


def test_explain_one_task(shop):
    every = answer(shop, "rules", "explain", "m.onnx")["tasks"]
    one = answer(shop, "rules", "explain", "m.onnx", "--task", 2)["tasks"]
    assert one == every[1:2]
    refused(program(shop, "rules", "explain", "m.onnx", "--task", 99), 2, "1 to ", "--task")


def test_explain_names_a_bad_rule(shop):
    (shop / "mine.py").write_text(HEAD + BAD["applies raises"][0])
    found = answer(shop, "rules", "explain", "m.onnx", "--task", 1, "--rules", "mine.py")
    (fault,) = found["tasks"][0]["faults"]
    assert re.search(r"mine raised ZeroDivisionError: .* \(mine\.py:\d+ in applies\)", fault)


def test_a_build_goes_on_without_a_bad_rule(shop):
    onnx.save(SMALL, shop / "small.onnx")
    (shop / "mine.py").write_text(HEAD + BAD["apply raises later"][0])
    words = ["small.onnx", "--search", "ansor", "--trials", 3, "--rules", "mine.py"]
    result = program(shop, "build", *words, "--registry", "r.db")
    assert result.returncode == 0, result.stderr
    assert "the rule mine raised KeyError" in " ".join(result.stderr.split())
    assert (shop / "small.so").is_file()


def test_explain_for_another_machine(shop):
    found = answer(shop, "rules", "explain", "m.onnx", "--task", 1, "--target", "rpi3")
    assert found["target"] == "rpi3"
    assert found["tasks"][0]["sketches"]


def test_the_example_is_a_project_s_rule(shop):
    (shop / "ansor-deploy.toml").touch()
    (shop / "rules").mkdir()
    shutil.copy(EXAMPLE, shop / "rules")
    onnx.save(SMALL, shop / "small.onnx")
    (task,) = answer(shop, "rules", "explain", "small.onnx")["tasks"]
    assert [step["rule"] for step in task["sketches"][0]["steps"]] == ["serial-small"]
    found = answer(shop, "rules", "explain", "m.onnx")["tasks"]
    conv = next(task for task in found if task["op"] == "conv2d")
    steps = [step["rule"] for sketch in conv["sketches"] for step in sketch["steps"]]
    assert "serial-small" not in steps


@pytest.mark.parametrize(
    ("name", "serial"), [("add", True), ("concat rows", True), ("softmax odd", False)]
)
def test_the_example_keeps_small_results_on_one_core(name, serial):
    found = derive(PROGRAMS[name](), HOST, before_shipped([load_rule(EXAMPLE)], "llvm"))
    candidate = found.sketches[0].program(Guess())
    assert ("T.parallel" not in candidate.sch.mod.script()) == serial
    same_result(name, candidate)


def test_a_new_rule_works_and_passes_its_test(shop):
    files = answer(shop, "rules", "new", "serial-small")["files"]
    assert files == ["rules/serial_small.py", "tests/test_serial_small.py", "ansor-deploy.toml"]
    onnx.save(SMALL, shop / "small.onnx")
    (task,) = answer(shop, "rules", "explain", "small.onnx")["tasks"]
    assert [step["rule"] for step in task["sketches"][0]["steps"]] == ["serial-small"]
    for _ in range(2):  # the first time writes its drawing
        tested = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        ran = subprocess.run(tested, cwd=shop, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout
    assert "-->" in (shop / "tests" / "serial_small.txt").read_text()
    refused(program(shop, "rules", "new", "serial-small"), 2, "it is there already")
    refused(program(shop, "rules", "new", "../up"), 2, "is no name for a rule")
