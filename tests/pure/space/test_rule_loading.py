"""Where rules come from, in which order, and what a file must have to be one."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy import space
from ansor_deploy.errors import UsageError
from ansor_deploy.project import Project
from ansor_deploy.space import rule as r
from ansor_deploy.space import rule_files
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.toml_file import read_toml

RULE = """\
'''{doc}'''
NAME = {name!r}
KINDS = {kinds!r}
def applies(state, block, target): ...
def apply(state, block, target): ...
"""


def write(folder, file, name="mine", kinds=("llvm",), doc="A rule."):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(RULE.format(name=name, kinds=kinds, doc=doc))
    return folder / file


def names(rules):
    return [rule.name for rule in rules]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "ansor-deploy.toml").touch()
    return tmp_path


@pytest.mark.parametrize("kind", ["llvm", "cuda"])
def test_every_ordered_rule_is_shipped_and_serves_its_kind(kind):
    order = read_toml(shipped("rules") / "order.toml")
    assert [rule.path.stem for rule in r.shipped_rules(kind)] == order.data[kind]


def test_every_shipped_rule_is_in_the_order():
    order = read_toml(shipped("rules") / "order.toml").data
    files = {path.stem for path in shipped("rules").glob("*.py")}
    assert {name for kind in order.values() for name in kind} == files


@pytest.mark.parametrize("path", sorted(shipped("rules").glob("*.py")), ids=lambda path: path.stem)
def test_a_shipped_rule_imports_the_vocabulary_and_the_standard_library_only(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert node.module == "ansor_deploy.space" or node.module in sys.stdlib_module_names
            assert node.level == 0


def test_no_module_has_the_name_of_what_a_rule_imports():
    """Once anything has imported the module, a rule would get it in place of the function."""
    modules = {path.stem for path in Path(space.__file__).parent.glob("*.py")}
    assert not modules & space.rule_names().keys()


def test_light_parts_of_the_space_load_no_tvm():
    code = "import sys; from ansor_deploy.space import rule, question; print('tvm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_order_may_not_name_what_is_not_there(tmp_path):
    (tmp_path / "order.toml").write_text('cuda = []\nllvm = ["absent"]\n')
    with pytest.raises(UsageError) as caught:
        rule_files.ordered_files(read_toml(tmp_path / "order.toml"), "llvm")
    assert caught.value.message.startswith(f"{tmp_path / 'order.toml'}:2: ")
    assert "'absent'" in caught.value.message


def test_only_a_marked_folder_has_rules(tmp_path):
    write(tmp_path / "rules", "mine.py")
    assert Project.find(tmp_path).rule_files() == []
    (tmp_path / "ansor-deploy.toml").touch()
    assert Project.find(tmp_path).rule_files() == [tmp_path / "rules" / "mine.py"]


def test_a_project_s_rules_come_by_name(project):
    files = [write(project / "rules", file) for file in ("b.py", "a.py")]
    (project / "rules" / "notes.txt").touch()
    assert Project.find(project).rule_files() == sorted(files)


def test_a_folder_of_rules_is_given_by_its_path(project):
    files = [write(project / "rules", file, file[0]) for file in ("b.py", "a.py")]
    (project / "rules").chmod(0o777)
    refused(program(project, "rules", "list"), 2, "can be changed by every user", "--rules")
    rows = answer(project, "rules", "list", "--rules", "rules")["rules"]
    assert [row["path"] for row in rows[:2]] == ["rules/a.py", "rules/b.py"]
    assert all(row["path"] not in map(str, files) for row in rows)
    (project / "empty").mkdir()
    refused(program(project, "rules", "list", "--rules", "empty"), 2, "no rule in this folder")


def test_given_rules_come_before_the_project_s_and_those_before_the_shipped(tmp_path):
    files = [write(tmp_path, "z.py", "given"), write(tmp_path, "a.py", "of-project")]
    found = names(r.rule_set(files, "llvm"))
    assert found == ["given", "of-project", *names(r.shipped_rules("llvm"))]


def test_the_first_of_a_name_counts(tmp_path):
    first, second = write(tmp_path, "a.py", "skip"), write(tmp_path, "b.py", "skip")
    rules = r.rule_set([first, second], "llvm")
    assert [rule.path for rule in rules if rule.name == "skip"] == [first]
    assert len(rules) == len(r.shipped_rules("llvm"))


def test_a_rule_of_another_kind_is_not_asked(tmp_path):
    path = write(tmp_path, "a.py", kinds=["cuda"])
    assert "mine" not in names(r.rule_set([path], "llvm"))
    assert "mine" in names(r.rule_set([path], "cuda"))


def test_the_digest_sees_content_and_order(tmp_path):
    a, b = write(tmp_path, "a.py", "a"), write(tmp_path, "b.py", "b")
    variants = [rule_files.rules_digest(files, "llvm") for files in ([a, b], [b, a], [a], [])]
    variants.append(rule_files.rules_digest([a, b], "cuda"))
    assert rule_files.rules_digest([a, b], "llvm") == variants[0]
    write(tmp_path, "a.py", "a", doc="Another.")
    variants.append(rule_files.rules_digest([a, b], "llvm"))
    assert len(set(variants)) == len(variants)


def test_the_digest_runs_no_rule(tmp_path):
    path = tmp_path / "raises.py"
    path.write_text("raise SystemExit\n")
    assert rule_files.rules_digest([path], "llvm")
    with pytest.raises(UsageError, match="cannot be read"):
        rule_files.rules_digest([tmp_path / "gone.py"], "llvm")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NAME = 'a'\nKINDS = ('llvm',)\n", "needs applies, apply"),
        ("KINDS = ('llvm',)\ndef applies(): ...\ndef apply(): ...\n", "needs NAME"),
        (RULE.format(name="", kinds=(), doc=""), "NAME must be"),
        (RULE.format(name=3, kinds=(), doc=""), "NAME must be"),
        (RULE.format(name="a", kinds="llvm", doc=""), "KINDS must list"),
        (RULE.format(name="a", kinds=(1,), doc=""), "KINDS must list"),
        ("NAME = 'a'\nKINDS = ()\napplies = apply = 1\n", "applies must be a function"),
        ("def (\n", "cannot be loaded: SyntaxError"),
        ("import does_not_exist\n", "cannot be loaded: ModuleNotFoundError"),
        ("1 / 0\n", "cannot be loaded: ZeroDivisionError"),
        ("raise SystemExit(0)\n", "cannot be loaded: SystemExit"),
        ("'\0'", "cannot be loaded"),
    ],
)
def test_a_file_that_is_no_rule_is_refused(tmp_path, text, says):
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        r.load_rule(path)
    assert caught.value.message.startswith(f"{path}:")
    assert says in caught.value.message
    assert caught.value.hint


def test_two_files_of_one_name_are_two_modules(tmp_path):
    one = r.load_rule(write(tmp_path / "one", "same.py", "one"))
    other = r.load_rule(write(tmp_path / "other", "same.py", "other"))
    assert (one.name, other.name) == ("one", "other")
    assert one.apply is not other.apply


def test_the_summary_is_the_docstring_s_first_paragraph(tmp_path):
    path = write(tmp_path, "a.py", doc="\nWhat it\ndoes.\n\nfor i: ...\n")
    assert r.load_rule(path).summary == "What it does."


def test_the_list_says_where_each_rule_comes_from(project):
    given = write(project, "given.py", "given")
    write(project / "rules", "own.py", "own")
    rows = answer(project, "rules", "list", "--rules", given.name)["rules"]
    assert [row["origin"] for row in rows][:3] == ["flag", "project", "shipped"]
    assert [row["name"] for row in rows][:2] == ["given", "own"]


def test_the_list_fits_a_terminal(project):
    write(project / "rules", "own.py", "own", doc="Many words. " * 20)
    result = program(project, "rules", "list")
    assert result.returncode == 0, result.stderr
    found = [line for line in result.stdout.splitlines() if "/" not in line]
    assert found
    assert max(map(len, found)) <= 80


def test_a_broken_rule_of_the_project_is_a_usage_error(project):
    (project / "rules").mkdir()
    (project / "rules" / "broken.py").write_text("1 / 0")
    result = program(project, "rules", "list", "--json")
    refused(result, 2, "broken.py", "ZeroDivisionError", "rules folder")
    assert json.loads(result.stdout)["error"]["kind"] == "usage"
