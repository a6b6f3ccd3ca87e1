"""A user's rule that computes something else: no record of it, and the rule is to blame."""

import onnx
import pytest
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.graphs import model, node

from ansor_deploy.registry.store import Registry

WRONG = """\
from ansor_deploy.space import ApplyAndSkipRest
NAME, KINDS = "in-bytes", ("llvm",)
def applies(state, block, target):
    return ApplyAndSkipRest()
def apply(state, block, target):
    rv = state.view(block).rv
    made = state.sch.cache_write(rv, 0, "global")
    state.sch.unsafe_set_dtype(rv, 0, "int8")
    state.finish(rv, made)
    return [state]
"""


@pytest.mark.parametrize("trials", [0, 2])
def test_a_rule_that_computes_something_else_makes_no_record(tmp_path, trials):
    onnx.save(model([node("Sigmoid", "x", "y")], {"x": [4, 64]}), tmp_path / "net.onnx")
    (tmp_path / "mine.py").write_text(WRONG)
    words = ("--trials", trials, "--rules", "mine.py", "--registry", "r.db")
    refused(program(tmp_path, "build", "net.onnx", *words), 6, "Sigmoid")
    with Registry.open(tmp_path / "r.db", write=False) as registry:
        assert registry.rows("SELECT id FROM records") == []
