"""The files that hold the rules of a kind of target, and the digest that identifies a rule set.

No rule is loaded for this, since an unchanged build needs the digest too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from ..system.digest import file_sha256, sha256
from ..system.environment import shipped
from ..system.toml_file import TomlFile, read_toml


def rules_digest(files: Sequence[Path], kind: str, precision: str = "default") -> str:
    """SHA-256 over the files that `rule_set` would load, in order; none of them is run.

    UsageError where a file cannot be read.
    """
    paths = (*files, *shipped_files(kind, precision))
    return sha256("\n".join(f"{path.stem} {file_digest(path)}" for path in paths))


def file_digest(path: Path) -> str:
    """SHA-256 of a rule's file; UsageError where it cannot be read."""
    try:
        return file_sha256(path)
    except OSError as error:
        what = f"the rule cannot be read: {error.strerror}"
        raise UsageError(what, "check its path and its permissions", path) from error


def shipped_files(kind: str, precision: str) -> list[Path]:
    """The files of the rules shipped with the tool, as `order.toml` orders them.

    precision: "strict" leaves out rules that rewrite a computation.
    """
    order = read_toml(shipped("rules") / "order.toml")
    left_out = order.data["rewriting"] if precision == "strict" else ()
    return [path for path in ordered_files(order, kind) if path.stem not in left_out]


def ordered_files(order: TomlFile, kind: str) -> list[Path]:
    """The files that an order names for a kind of target; UsageError where one does not exist."""
    files = [order.path.parent / f"{name}.py" for name in order.data.get(kind, [])]
    for path in files:
        if not path.is_file():
            raise order.error(f"there is no rule {path.stem!r} beside this file", kind)
    return files
