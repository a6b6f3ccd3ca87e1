"""Where things are: the user's project, the content shipped with the tool, the registry.

A project is the folder with an `ansor-deploy.toml`. The search order is always the same: what
the command line says, then the project, then what is shipped or the user's data folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import AnsorError
from .system.environment import user_folder
from .system.toml_file import Line, read_toml

MARKER = "ansor-deploy.toml"
_FIELDS = ("registry", "target", "trust", "team")


@dataclass(frozen=True)
class Project:
    """What `ansor-deploy.toml` says; all None where there is no such file.

    root: the folder it lies in. registry: path of the registry, resolved against `root`.
    target: name, or path ending in `.toml`, of the target to build for. trust: a file of public
    keys; records from outside must be signed by one of them. team: where the team's records are:
    a bundle's file, or a folder of bundles by its path, resolved against `root`, or its URL.
    """

    root: Path | None = None
    registry: Path | None = None
    target: str | None = None
    trust: Path | None = None
    team: str | None = None

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project of `start` (default: the working directory) or of a folder above it.

        None is looked for where the environment's ANSOR_DEPLOY_PROJECT is "none": what a build
        system declares is all that a build of it may read. UsageError, with file and line, if the
        project's file says what cannot be.
        """
        if os.environ.get("ANSOR_DEPLOY_PROJECT") == "none":
            return cls()
        here = (start or Path.cwd()).resolve()
        for folder in (here, *here.parents):
            if (folder / MARKER).is_file():
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

    def rule_files(self) -> list[Path]:
        """The files of the project's `rules` folder, by name; none outside a project.

        Only the marker makes a folder's rules count, because loading one runs its code.
        """
        return sorted((self.root / "rules").glob("*.py")) if self.root else []


def shipped(name: str) -> Path:
    """Folder of the content shipped with the tool: "registry", "rules" or "targets".

    In an installed tool it lies inside the package, in a checkout beside it.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_shipped" / name, package.parent / name):
        if folder.is_dir():
            return folder
    hint = "Install the tool again: pip install --force-reinstall ansor-deploy."
    raise AnsorError(f"this installation lacks its {name} folder, beside {package}", hint)


def cache_folder(name: str) -> Path:
    """A folder for what can be had again: below `$XDG_CACHE_HOME`, by default `~/.cache`.

    UsageError if there is no home directory.
    """
    return user_folder("CACHE", "copies") / name


def _read(root: Path) -> Project:
    file = read_toml(root / MARKER)
    file.check(dict.fromkeys(_FIELDS, Line))
    said = {key: file.data.get(key) for key in _FIELDS}
    for key in ("registry", "trust"):
        said[key] = _path(root, said[key])
    if said["team"] and "://" not in said["team"]:
        said["team"] = str(_path(root, said["team"]))
    return Project(root, **said)


def _path(root: Path, text: str | None) -> Path | None:
    return root / Path(text).expanduser() if text else None
