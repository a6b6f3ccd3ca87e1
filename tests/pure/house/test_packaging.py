"""pyproject.toml names every package, ships all content, and declares what is imported."""

import ast
import os
import re
import sys
import sysconfig
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import ansor_deploy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTENT = ("registry", "rules", "targets")


def test_every_package_is_listed():
    folders = {path.parent for path in (ROOT / "ansor_deploy").rglob("*.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    shipped = {f"ansor_deploy._shipped.{name}" for name in CONTENT}
    assert set(CONFIG["tool"]["setuptools"]["packages"]) == names | shipped


def test_every_import_is_declared():
    declared = {_name(text) for text in CONFIG["project"]["dependencies"]}
    for extra in ("browse", "farm", "openvino", "zstd"):
        declared |= {_name(text) for text in CONFIG["project"]["optional-dependencies"][extra]}
    distributions = packages_distributions()
    for path in [*(ROOT / "ansor_deploy").rglob("*.py"), *(ROOT / "rules").glob("*.py")]:
        for module in _imports(path) - sys.stdlib_module_names - {"ansor_deploy"}:
            names = {_name(name) for name in distributions.get(module, [module])}
            assert names & declared, f"{path.name} imports {module}, which is not declared"


def _name(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def _executed(node):
    """The node and all below it, but for what stands there for type checkers only."""
    yield node
    if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(node):
            yield from _executed(child)


def _imports(path):
    found = set()
    for node in _executed(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.skipif("TOX_ENV_NAME" not in os.environ, reason="only tox installs the wheel")
def test_the_wheel_is_what_is_tested():
    package = Path(ansor_deploy.__file__).parent
    assert not package.is_relative_to(ROOT / "ansor_deploy")
    for folder in CONTENT:
        shipped = package / "_shipped" / folder
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".toml", ".yml", ".jsonl"):
                assert (shipped / path.relative_to(ROOT / folder)).is_file(), path.name
    pages = Path(sysconfig.get_path("data"), "share", "man", "man1")
    for path in (ROOT / "docs" / "man").iterdir():
        assert (pages / path.name).is_file(), path.name
    hooks = ROOT / "ansor_deploy" / "ship" / "integrations"
    installed = package / "ship" / "integrations"
    for path in hooks.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (installed / path.relative_to(hooks)).is_file(), path.name
