"""Docs that fail, and the house rules that a program can check."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansor_deploy import errors

ROOT = Path(__file__).resolve().parents[3]
NOT_OURS = {".git", ".tox", ".venv", "dist", "out", "__pycache__"}
MAX_LINES, MAX_FUNCTION_LINES, MAX_BYTES = 400, 60, 1_000_000
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|NotImplemented" + r"Error)\b")


def _ours(path):
    parts = path.relative_to(ROOT).parts
    hidden = any(p in NOT_OURS or p.endswith((".egg-info", "_cache")) for p in parts)
    made = "build" in parts and parts[0] in ("build", "examples")
    return path.is_file() and not hidden and not made


FILES = sorted(path for path in ROOT.rglob("*") if _ours(path))
PYTHON = [path for path in FILES if path.suffix == ".py"]
MARKDOWN = [path for path in FILES if path.suffix == ".md"]


def _name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.skipif(not shutil.which("mandoc"), reason="needs mandoc: apt-get install mandoc")
def test_manual_pages_are_sound():
    pages = sorted((ROOT / "docs" / "man").glob("*.1"))
    command = ["mandoc", "-Tlint", "-Wwarning", *map(str, pages)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    # They bear no date: nothing but the version tells one from the other.
    assert [line for line in said.splitlines() if "missing date" not in line] == []
    build = (ROOT / "docs" / "man" / "ansor-deploy-build.1").read_text("utf-8")
    assert all(head in build for head in ('.SH "SYNOPSIS"', '.SH "EXAMPLES"', '.SH "TUNING"'))
    assert r"\fB\-q, \-\-quiet\fR" in build


def test_links_resolve():
    assert [(_name(path), link) for path in MARKDOWN for link in _broken_links(path)] == []


def _broken_links(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", text):
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            yield link


def _anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}


def test_no_file_is_large():
    assert [_name(path) for path in FILES if path.stat().st_size > MAX_BYTES] == []


def test_no_module_is_long():
    lengths = {_name(path): len(path.read_text("utf-8").splitlines()) for path in PYTHON}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_functions_are_short():
    lengths = {name: length for path in PYTHON for name, length in _function_lengths(path)}
    assert {name: n for name, n in lengths.items() if n > MAX_FUNCTION_LINES} == {}


def _function_lengths(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{_name(path)}: {node.name}", node.end_lineno - node.lineno + 1


def test_nothing_is_left_unfinished():
    assert [_name(p) for p in PYTHON + MARKDOWN if UNFINISHED.search(p.read_text("utf-8"))] == []


def test_help_loads_no_compiler():
    code = (
        "import sys, runpy; sys.argv = ['ansor-deploy', '--help']\n"
        "try: runpy.run_module('ansor_deploy', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'tvm', 'onnx', 'onnxruntime', 'paramiko', 'xgboost', 'sqlite_utils'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_every_exit_code_is_in_the_table():
    table = (ROOT / "docs" / "exit_codes.md").read_text(encoding="utf-8")
    known = {one.exit_code for one in vars(errors).values() if hasattr(one, "exit_code")}
    assert {code for code in known if f"\n| {code} | " not in table} == set()


def test_every_field_of_the_manifest_is_explained():
    schema = json.loads((ROOT / "docs" / "schemas" / "manifest.json").read_text(encoding="utf-8"))
    fields = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
    page = (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8")
    assert [name for name in fields if f"`{name}`" not in page] == []
