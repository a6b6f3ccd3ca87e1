"""A user's rules in their own process: what comes back is the same, and what does not is named."""

import random
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from helpers.built import HOST, imported
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.graphs import model, node
from helpers.programs import PROGRAMS

from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space import rule_process
from ansor_deploy.space.derivation import derive, newly_ended
from ansor_deploy.space.question import Decided, Guess, Random
from ansor_deploy.space.rule import Rule, before_shipped, load_rule, rule_set, shipped_rules
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.tune.search import open_search
from ansor_deploy.tune.search.context import SearchContext
from ansor_deploy.tune.search.genome import recover

RULE = """\
import ctypes, os, signal, sys, time
from ansor_deploy.space import Apply, ApplyAndSkipRest, Pass
NAME, KINDS = {name!r}, ("llvm",)
def applies(state, block, target):
    {applies}
    return Pass("nothing happened")
def apply(state, block, target):
    return [state]
"""
# What a rule does when it is asked, and what is then said of it.
ENDS = {
    "exits": ("sys.exit(0)", "ended its process (exit status 0)"),
    "exits at once": ("os._exit(0)", "ended its process (exit status 0)"),
    "interrupts": ("raise KeyboardInterrupt", "ended its process (SIGINT)"),
    "crashes": ("ctypes.string_at(0)", "ended its process (SIGSEGV)"),
    # Its connection breaks a while before it has ended.
    "shuts everything": ("os.closerange(0, 1000)", "ended its process ("),
    "kills": ("os.kill(os.getpid(), signal.SIGKILL)", "ended its process (SIGKILL)"),
    "opens everything": (
        "globals()['kept'] = [os.dup(0) for _ in iter(int, 1)]",
        "ran into too many open files",
    ),
    "loops": ("while True: pass", "took more than 1 s of processor time"),
    "waits": ("time.sleep(1000)", "did not come back within 5 s"),
}
# What it may do, and is asked on.
RAISES = {
    "recurses": ("return applies(state, block, target)", "raised RecursionError"),
    # The system clears these only as they are used: nothing is, so it takes no time.
    "eats memory": ("[bytes(1 << 28) for _ in range(64)]", "raised MemoryError"),
    "prints": ("while True: print('x' * 100_000)", "raised OSError: [Errno 27] File too large"),
}


def written(folder: Path, applies: str, name: str = "mine") -> Path:
    path = folder / f"{name}.py"
    path.write_text(RULE.format(name=name, applies=applies))
    return path


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch):
    monkeypatch.setattr(rule_process, "PROCESSOR_SECONDS", 1.0)


def without_a_user_s() -> list[str]:
    return [str(one) for one in derive(PROGRAMS["add"](), HOST, shipped_rules("llvm")).sketches]


@pytest.mark.parametrize("what", ENDS)
def test_a_rule_that_ends_its_process_is_left_out_from_then_on(tmp_path, what, monkeypatch):
    applies, says = ENDS[what]
    rules = rule_set([written(tmp_path, applies)], "llvm")
    if what == "waits":
        monkeypatch.setattr(rule_process, "SECONDS", 5.0)
    first, second = (derive(PROGRAMS["add"](), HOST, rules) for _ in range(2))
    assert [str(one) for one in first.sketches] == without_a_user_s()
    (fault,) = first.faults
    assert fault.startswith(f"the rule mine {says}")
    assert " at block " in fault
    assert second.faults == []  # it was not asked again
    assert [str(one) for one in second.sketches] == without_a_user_s()


@pytest.mark.parametrize("what", RAISES)
def test_what_the_limits_refuse_is_a_fault_like_any_other(tmp_path, what):
    applies, says = RAISES[what]
    found = derive(PROGRAMS["add"](), HOST, rule_set([written(tmp_path, applies)], "llvm"))
    assert [str(one) for one in found.sketches] == without_a_user_s()
    (fault,) = found.faults
    assert fault.startswith(f"the rule mine {says}")


def test_the_guilty_one_of_several_rules_is_left_out(tmp_path):
    files = [written(tmp_path, "pass", "good"), written(tmp_path, "os._exit(0)", "bad")]
    found = derive(PROGRAMS["add"](), HOST, rule_set(files, "llvm"))
    assert len(found.faults) == 1
    assert "the rule bad " in found.faults[0]
    assert any(one.rule == "good" for one in found.answers)


def test_what_a_rule_prints_is_heard_even_of_one_that_ends_its_process(tmp_path):
    prints = "print(f'at {block}', file=sys.stderr); print('bye')"
    files = [
        written(tmp_path, prints, "good"),
        written(tmp_path, "print('so far', end=''); sys.stdout.flush(); os._exit(0)", "bad"),
    ]
    heard = []
    rules = rule_set(files, "llvm", heard=lambda *said: heard.append(said))
    derive(PROGRAMS["add"](), HOST, rules)
    once = [("good", "at T_add"), ("good", "bye")]
    assert heard == [*once, ("bad", "so far"), *once]


def test_a_fork_of_the_process_answers_nothing(tmp_path):
    rules = rule_set([written(tmp_path, "os.fork()")], "llvm")
    for _ in range(2):
        found = derive(PROGRAMS["add"](), HOST, rules)
        assert found.faults == []
        assert [str(one) for one in found.sketches] == without_a_user_s()


@pytest.fixture
def fickle(tmp_path) -> list[Rule]:
    """Rules of which the user's ends its process under one of two choices."""
    path = tmp_path / "mine.py"
    text = RULE.format(name="mine", applies="return ApplyAndSkipRest()")
    path.write_text(
        text.replace("return [state]", "state.choose('x', [0, 1]) and os._exit(0); return [state]")
    )
    return rule_set([path], "llvm")


def test_a_search_warns_of_a_rule_that_ends_it_under_some_choices_only(fickle):
    warnings = []
    context = SearchContext(HOST, fickle, warn=warnings.append)
    proto = model([node("Add", "x x", "y")], {"x": [4, 64]})
    (task,) = extract(imported(proto).mod, HOST).values()
    assert len(open_search("ansor", task, [], context).propose(8)) == 1
    assert len(warnings) == 1
    assert "the rule mine ended its process (exit status 0)" in warnings[0]


def test_a_rule_that_ends_it_under_some_choices_only_is_a_misfit_that_is_named(fickle):
    rules = fickle
    (sketch,) = derive(PROGRAMS["add"](), HOST, rules).sketches
    (decision,) = sketch.program(Guess()).decisions
    assert newly_ended(rules) == []
    with pytest.raises(ValueError, match="the rule mine ended its process"):
        sketch.program(Decided([replace(decision, index=1)], Guess()))
    (sentence,) = newly_ended(rules)
    assert sentence.startswith("the rule mine ended its process (exit status 0) at block ")


@pytest.mark.parametrize(
    ("applies", "says"),
    [
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import os; os._exit(0)", "it ended its process (exit status 0)"),
        ("while True: pass", "it took more than 1 s of processor time"),
    ],
)
def test_a_file_that_cannot_be_run_is_named(tmp_path, applies, says):
    path = tmp_path / "mine.py"
    path.write_text(f"{applies}\n")
    with pytest.raises(rule_process.UsageError) as caught:
        rule_set([path], "llvm")
    assert caught.value.file == path
    assert caught.value.text == f"the rule cannot be loaded: {says}"


@pytest.fixture(scope="module")
def twice() -> tuple[list[Rule], list[Rule]]:
    """Shipped rules as if they were a user's, in a process and in this one."""
    files = [shipped("rules") / f"{name}.py" for name in ("register_tile", "row_fusion")]
    return rule_set(files, "llvm"), before_shipped([load_rule(path) for path in files], "llvm")


@pytest.mark.parametrize("name", ["conv residual", "softmax odd", "two products"])
def test_programs_are_the_same_as_in_this_process(twice, name):
    found, wanted = (derive(PROGRAMS[name](), HOST, rules) for rules in twice)
    assert found.answers == wanted.answers
    assert [str(one) for one in found.sketches] == [str(one) for one in wanted.sketches]
    for one, other in zip(found.sketches, wanted.sketches, strict=True):
        for seed in range(3):
            here, there = (
                sketch.program(Random(random.Random(seed)) if seed else Guess())
                for sketch in (one, other)
            )
            trace = dump(here.sch.trace)
            assert trace == dump(there.sch.trace)
            assert here.decisions == there.decisions
            assert [d.option for d in here.decisions] == [d.option for d in there.decisions]
            assert dump(one.program(Decided(there.decisions, Guess())).sch.trace) == trace
    made = recover(found.sketches, trace)
    assert made is not None
    assert made[1].decisions == here.decisions


@pytest.mark.parametrize("details", [(), ("-v",)])
def test_an_explanation_shows_what_rules_print_where_details_are_asked_for(tmp_path, details):
    onnx.save(model([node("Add", "x x", "y")], {"x": [4, 64]}), tmp_path / "net.onnx")
    file = written(tmp_path, "print('a thought')")
    result = program(tmp_path, "rules", "explain", "net.onnx", "--rules", file, *details)
    assert "a thought" not in result.stdout
    assert ("mine: a thought\n" in result.stderr) == bool(details)


def test_a_build_goes_on_without_rules_that_exit(tmp_path):
    onnx.save(model([node("Add", "x x", "y")], {"x": [4, 64]}), tmp_path / "net.onnx")
    exits = "print('a last word'); sys.exit(0)"
    files = [written(tmp_path, exits, "one"), written(tmp_path, "os._exit(0)", "other")]
    rules = [word for file in files for word in ("--rules", file)]
    words = ("net.onnx", "-v", "--trials", 0, *rules, "--registry", "r.db")
    result = program(tmp_path, "build", *words)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stderr.split())
    assert "one: a last word" in said
    assert said.count("ended its process (exit status 0)") == 2
    assert (tmp_path / "net.so").is_file()


def test_a_build_with_a_file_that_exits_is_refused(tmp_path):
    onnx.save(model([node("Add", "x x", "y")], {"x": [4, 64]}), tmp_path / "net.onnx")
    (tmp_path / "mine.py").write_text("import os\nos._exit(0)\n")
    words = ("net.onnx", "--trials", 0, "--rules", "mine.py", "--registry", "r.db")
    refused(program(tmp_path, "build", *words), 2, "mine.py", "exit status 0")
    assert not (tmp_path / "net.so").exists()
