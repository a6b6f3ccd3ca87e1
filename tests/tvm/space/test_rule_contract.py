"""Every shipped rule keeps the contract that a user's rule is held to, and so does the README's.

The first line of a drawing in tests/golden names its program and block. `--update-golden` writes
the drawings anew; then read the diff.
"""

import re
import shutil
from pathlib import Path

import pytest
from helpers import built
from helpers.programs import DRAWN

from ansor_deploy.space.rule import load_rule, load_rules
from ansor_deploy.space.rule_files import ordered_files
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.toml_file import read_toml
from ansor_deploy.target import load_target
from ansor_deploy.testing.rule import RuleContract

GOLDEN = Path(__file__).parents[2] / "golden"
README = Path(__file__).parents[3] / "rules" / "README.md"
RULES = sorted(shipped("rules").glob("*.py"))
# Machines that are the same everywhere; the first has four lanes, 32 registers and four cores.
TARGETS = {
    "llvm": load_target("cortex-a53", [shipped("targets")]),
    "cuda": load_target("v100", [shipped("targets")]),
}


class OfFiles(RuleContract):
    """The contract for a rule and the golden file that names its program."""

    def rule(self):
        return self.path

    def target(self):
        return TARGETS[load_rule(self.path).kinds[0]]

    def program(self):
        return DRAWN[self.example()[0]]()

    def block(self):
        return self.example()[1]

    def example(self):
        title, *_ = self.golden.read_text(encoding="utf-8").splitlines()
        return title.removeprefix("# ").split(" at ")

    def outputs(self, mod):
        on_gpu = self.target().kind == "cuda"
        return built.loop_outputs(built.in_turn(mod) if on_gpu else mod)


class TestShipped(OfFiles):
    @pytest.fixture(autouse=True, params=RULES, ids=lambda path: path.stem)
    def _files(self, request):
        self.path, self.golden = request.param, GOLDEN / f"{request.param.stem}.txt"
        self.update = request.config.getoption("--update-golden")


class TestReadme(OfFiles):
    update = True

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path):
        """Three files are touched, as the page says."""
        folder = shutil.copytree(shipped("rules"), tmp_path / "rules")
        text = README.read_text(encoding="utf-8")
        (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        (title,) = re.findall(r"```text\n *(# .*?\n)", text)
        (line,) = re.findall(r"`(\"\w+\",)` in the list", text)
        self.path, self.golden = folder / "strips.py", tmp_path / "strips.txt"
        self.path.write_text(code, encoding="utf-8")
        self.golden.write_text(title, encoding="utf-8")
        order = folder / "order.toml"
        listed = order.read_text(encoding="utf-8").replace('"skip",', f'{line}\n  "skip",', 1)
        order.write_text(listed, encoding="utf-8")

    def test_it_is_asked_before_the_last(self):
        order = read_toml(self.path.parent / "order.toml")
        *_, last_but_one, last = load_rules(ordered_files(order, "llvm"), "llvm")
        assert (last_but_one.name, last.name) == ("strips", "skip")


def test_no_drawing_is_of_a_rule_that_is_gone():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {path.stem for path in RULES}
