"""Write the reference pages that are made from the shipped files, or with --check name the stale.

`shipped_targets.md` is what the files of targets/ say, `rules_api.md` what a rule may import: the
signatures and docstrings of what `ansor_deploy.space` hands on, read as text, so that no TVM is
needed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from dataclasses import fields
from pathlib import Path

from ansor_deploy.space import TVM_NAMES, rule_names
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.toml_file import read_toml
from ansor_deploy.target import GpuLimits, Target, load_target, target_files

HERE = Path(__file__).parent
TARGETS = """\
# Shipped targets

This page shows the files of `targets/`, with all that they extend. [targets.md](targets.md) says
what each field means, and how to write a target of your own. `host`, the present machine, is not on
this page: `ansor-deploy targets show host` prints it. Made by `python docs/make_reference.py`.
"""
RULES = """\
# What a rule imports

A rule imports these names from `ansor_deploy.space`, and from no other part of the tool.
[rules.md](rules.md) says how to write a rule. Made by `python docs/make_reference.py` from the
docstrings.

What none of these functions does, a rule does itself with TVM's own names, which
`ansor_deploy.space` hands on: {of_tvm}.
"""
DETECTED = "the machine's"
_Definition = ast.FunctionDef | ast.ClassDef


def targets_page() -> str:
    """Every shipped target with its fields."""
    folder = shipped("targets")
    named = [path.stem for path in sorted(folder.glob("*.toml")) if path.stem != "host"]
    return "\n".join([TARGETS, *(_shipped(name, folder) for name in named)])


def _shipped(name: str, folder: Path) -> str:
    files = [read_toml(path) for path in target_files(name, [folder])]
    if not any(file.data.get("detected") for file in files):
        return _target(load_target(name, [folder]))
    named = {field for file in files for field in file.data} | {"name"}
    detected = {one.name for one in fields(Target) if one.name not in named} - {"gpu"}
    return _target(load_target(f"{name}:4", [folder]), detected)


def _target(target: Target, detected: Collection[str] = ()) -> str:
    """A target's fields. detected: those that are the machine's, but for the cores of NAME:4."""
    said = {one.name: getattr(target, one.name) for one in fields(Target)}
    said |= dict.fromkeys(detected, DETECTED)
    gpu = said.pop("gpu")
    if gpu:
        said |= {f"gpu.{one.name}": getattr(gpu, one.name) for one in fields(GpuLimits)}
    name, description = said.pop("name"), said.pop("description")
    rows = [f"| `{field}` | {_value(value)} |" for field, value in said.items()]
    of = f" of `{name}`" if detected else ""
    rows.append(f"| fingerprint{of} | `{target.fingerprint[:8]}` |")
    name = name.partition(":")[0]
    return "\n".join([f"## {name}\n\n{description}\n\n| field | value |\n|---|---|", *rows, ""])


def _value(value: object) -> str:
    if value == DETECTED:
        return DETECTED
    return " ".join(f"`{one}`" for one in value) if isinstance(value, tuple) else f"`{value}`"


def rules_page() -> str:
    """The state that a rule is given, and every name that it may import."""
    names = {"State": "ansor_deploy.space.state", **rule_names()}
    entries = {name: module for name, module in names.items() if name not in TVM_NAMES}
    read = {module: _definitions(module) for module in entries.values()}
    parts = [RULES.format(of_tvm=", ".join(f"`{name}`" for name in TVM_NAMES))]
    parts += [_entry(name, read[module][name]) for name, module in entries.items()]
    return "\n".join(parts)


def _definitions(module: str) -> dict[str, ast.stmt]:
    """What a module defines, by name."""
    path = HERE.parent.joinpath(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {name: node for node in tree.body for name in _defined(node)}


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, _Definition):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _entry(name: str, node: ast.stmt) -> str:
    """A heading, the signature and the docstring."""
    if not isinstance(node, _Definition):
        return f"## {name}\n\n```text\n{ast.unparse(node)}\n```\n"
    said = [f"## {name}", _block(node)]
    if isinstance(node, ast.ClassDef):
        said += [f"### {name}.{one.name}\n\n{_block(one)}" for one in _methods(node)]
    return "\n\n".join(said) + "\n"


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield one


def _block(node: _Definition) -> str:
    """Signature and docstring; one that draws loops keeps its shape."""
    text = ast.get_docstring(node) or ""
    if "\n-->" in text or "\n " in text:
        return f"```text\n{_signature(node)}\n\n{text}\n```"
    return f"```text\n{_signature(node)}\n```\n\n{text}".rstrip()


def _signature(node: _Definition) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if any(ast.unparse(one) in ("property", "cached_property") for one in node.decorator_list):
        return f"{node.name}{returns.replace(' ->', ':')}  # a property"
    return f"{node.name}({ast.unparse(node.args)}){returns}"


PAGES = {"shipped_targets.md": targets_page, "rules_api.md": rules_page}


def run(arguments: list[str]) -> str:
    """Write the pages, or check them; what is wrong, if anything is."""
    pages = {HERE / name: made() for name, made in PAGES.items()}
    if "--check" not in arguments:
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
        return ""
    stale = [path.name for path, text in pages.items() if not _holds(path, text)]
    return f"run python docs/make_reference.py: stale are {', '.join(stale)}" if stale else ""


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]) or 0)
