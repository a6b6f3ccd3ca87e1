"""Where a project keeps its targets, its rules and its registry.

A project is a folder with an `ansor-deploy.toml`. The search order is always the same: the command
line, then the project, then what is shipped or the user's data folder.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .errors import UsageError
from .system.environment import expanded, shipped, user_folder
from .system.ownership import foreign_owner, is_open_to_all
from .system.toml_file import Line, Lines, Table, TomlFile, read_toml

MARKER = "ansor-deploy.toml"
_VARIABLE = "ANSOR_DEPLOY_PROJECT"
_FIELDS = ("registry", "target", "trust", "team")


@dataclass(frozen=True)
class Project:
    """The settings in `ansor-deploy.toml`; None each where there is no such file.

    root: the file's folder. registry: the path of the registry, resolved against `root`. target:
    the name of the target to build for, or a path ending in `.toml`. trust: a file of public keys;
    records from outside must be signed by one of them. team: where the team's records are: a
    bundle's file or a folder of bundles, as a path resolved against `root` or as a URL. devices:
    for a target's name, the names of the devices that run its code. is_named: whether the
    environment names the project; else it was found from the working directory.
    """

    root: Path | None = None
    registry: Path | None = None
    target: str | None = None
    trust: Path | None = None
    team: str | None = None
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_named: bool = False

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project in `start` (default: the working directory) or in a folder above it.

        The environment's ANSOR_DEPLOY_PROJECT may name another folder. With "none" no project is
        looked for, since a build system's builds may read only what it declares. UsageError, with
        file and line, if the project's file is not valid, or if another user wrote it and it was
        not named.
        """
        named = os.environ.get(_VARIABLE)
        if named == "none":
            return cls()
        if named:
            return replace(_read(Path(named).resolve()), is_named=True)
        here = (start or Path.cwd()).resolve()
        for folder in (here, *here.parents):
            if (folder / MARKER).is_file():
                _check_owner(folder)
                return _read(folder)
        return cls()

    def registry_path(self, option: Path | None = None) -> Path:
        """The registry to use: `option`, else the project's, else the one in the data folder.

        The data folder is `$XDG_DATA_HOME/ansor-deploy`, by default `~/.local/share/ansor-deploy`.
        UsageError if it is needed and there is no home directory.
        """
        if path := option or self.registry:
            return path
        hint = f"Say where it is: --registry PATH, or registry = PATH in {MARKER}."
        return user_folder("DATA", "the registry", hint) / "registry.db"

    def target_path(self) -> list[Path]:
        """Folders that `load_target` searches: the project's `targets`, then the shipped one."""
        own = [self.root / "targets"] if self.root else []
        return [*own, shipped("targets")]

    def files(self) -> list[Path]:
        """The project's own file; none outside a project."""
        return [self.root / MARKER] if self.root else []

    def rule_files(self, given: Iterable[Path] = ()) -> list[Path]:
        """The files of the project's `rules` folder, by name; none outside a project.

        Without the marker a folder's rules do not count, because loading a rule runs its code.
        UsageError where other users may have written one. given: files that were named explicitly;
        they are left out.
        """
        if self.root is None:
            return []
        folder, known = self.root / "rules", {path.resolve() for path in given}
        files = [path for path in sorted(folder.glob("*.py")) if path.resolve() not in known]
        if files and not self.is_named:
            for path in (folder, *files):
                _check_writers(path, folder)
        return files


def _check_owner(root: Path) -> None:
    """UsageError where the project's file or its folder belongs to another user."""
    for path in (root, root / MARKER):
        if owner := foreign_owner(path):
            raise UsageError(
                f"the project belongs to {owner}, and decides what is read and where it is written",
                f"if you trust it: export {_VARIABLE}={shlex.quote(str(root))}; "
                f"to do without it: export {_VARIABLE}=none",
                path,
            )


def _check_writers(path: Path, folder: Path) -> None:
    """UsageError where another user may have written a rule."""
    owner = foreign_owner(path)
    if owner or is_open_to_all(path):
        why = f"belongs to {owner}" if owner else "can be changed by every user"
        raise UsageError(
            f"it {why}, and loading a rule runs its code",
            f"if you trust it, name it: --rules {shlex.quote(str(folder))}"
            + ("" if owner else f"; else keep others out: chmod o-w {shlex.quote(str(path))}"),
            path,
        )


def _read(root: Path) -> Project:
    file = read_toml(root / MARKER)
    target = file.data.get("target")
    form = Table if isinstance(target, dict) else Line
    file.check({**dict.fromkeys(_FIELDS, Line), "target": form})
    said: dict[str, Any] = {key: file.data.get(key) for key in _FIELDS}
    if isinstance(target, dict):
        said["target"], said["devices"] = _targets(file, dict(target))
    for key in ("registry", "trust"):
        said[key] = _path(root, said[key])
    if said["team"] and "://" not in said["team"]:
        said["team"] = str(_path(root, said["team"]))
    return Project(root, **said)


def _targets(
    file: TomlFile, tables: dict[str, Any]
) -> tuple[str | None, dict[str, tuple[str, ...]]]:
    """The name of the target to build for, and the devices of each target that has some.

    tables: the contents of [target]: `default`, and a table with `devices` for each target.
    """
    file.check({**dict.fromkeys(tables, Table), "default": Line}, "target")
    default = tables.pop("default", None)
    for name, table in tables.items():
        file.check({"devices": Lines}, f"target.{name}", table)
    return default, {
        name: tuple(dict.fromkeys(table["devices"]))
        for name, table in tables.items()
        if "devices" in table
    }


def _path(root: Path, text: str | None) -> Path | None:
    return root / expanded(text) if text else None
