"""The small files with which a folder's builds make libraries of models; none is overwritten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import AnsorError, UsageError
from ...project import MARKER, Project
from ...system.atomic_file import write_whole
from ..outputs.depfile import escaped
from . import hook_folder
from .build_systems import BuildSystem, Model

# Paths that are safe in a call that make expands, evaluates, and passes to a shell.
_PLAIN = re.compile(r"[\w./][\w./ +@=-]*")
_SHAPE = re.compile(r"[\w./][\w./+@=-]*=[\d,]+")
_SETTINGS = """\
# Settings of ansor-deploy for this folder and those below it. Targets of your own go into
# targets/NAME.toml, rules into rules/NAME.py.
target = "{target}"
"""
_BAZEL_HOOKS = Path("third_party", "ansor_deploy")
_DEBIANS_BAZEL = Path("/usr/share/bazel/tools/skylib")  # Debian's Bazel would fetch it otherwise


@dataclass(frozen=True)
class Part:
    """A file of a project. what: its purpose.

    text: the content of a new file. link: the destination, if it is a symbolic link instead. needs:
    the lines that an existing file must have, each by a part of it that shows it is present.
    """

    path: Path
    what: str
    text: str = ""
    needs: Mapping[str, str] = field(default_factory=dict)
    link: Path | None = None

    @property
    def is_there(self) -> bool:
        """Whether the path exists already; such a file is left as it is."""
        return self.path.exists() or self.path.is_symlink()

    @property
    def lacking(self) -> str:
        """The lines that must be added by hand to an existing file; "" if there are none."""
        if not self.needs or not self.path.is_file():
            return ""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(dict.fromkeys(one for sign, one in self.needs.items() if sign not in text))

    def make(self) -> None:
        """Write the file, or make the link."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.link is not None:
            self.path.symlink_to(self.link)
        else:
            write_whole(self.path, self.text.encode())


def check_names(models: Sequence[Model]) -> None:
    """UsageError where a build system would misread a name, or two models have the same name."""
    of_name: dict[str, Path] = {}
    for model in models:
        names = [(name, _PLAIN) for name in (str(model.path), model.target)]
        for name, pattern in [*names, *((shape, _SHAPE) for shape in model.shapes)]:
            if not pattern.fullmatch(name):
                hint = "rename it: letters, digits, spaces and . / _ + @ - = are read as they are"
                raise UsageError(f"a build system cannot be given the name {name!r}", hint)
        if (other := of_name.setdefault(model.name, model.path)) != model.path:
            hint = "rename one of them"
            raise UsageError(f"{other} and {model.path} would be one library, {model.name}", hint)


def check_folder(folder: Path, system: BuildSystem) -> None:
    """UsageError where a build in a folder could not say what it has read."""
    try:
        if system.name != "bazel":  # which needs no depfile
            escaped(folder)
    except AnsorError as error:
        raise UsageError(error.text, "rename the folder, or start in another", folder) from error


def parts(
    folder: Path, system: BuildSystem, models: Sequence[Model], program: str
) -> Iterator[Part]:
    """The files that a folder needs so that its builds make libraries of models.

    program: the source of a program that runs the first model; "" for none.
    """
    if Project.find(folder).root is None:
        settings = _SETTINGS.format(target=models[0].target)
        yield Part(folder / MARKER, "the settings of this folder", settings)
    names = {
        "NAME": models[0].name,
        "LIBRARIES": " ".join(f"$({model.name}_LIBRARY)" for model in models),
        "MODELS": "\n\n".join(map(system.declare, models)),
    }
    calls = {system.sign.format(name=model.name): system.declare(model) for model in models}
    main = system.main(folder)
    text = _filled(system.template(system.mains[0]), names)
    if system.models:
        own = _filled(system.template(system.models), names)
        yield Part(folder / system.models, "the models, for a build to include", own, calls)
        calls = {system.models: system.include}
    whole = text + (_filled(system.template(f"{main.name}.program"), names) if program else "")
    yield Part(main, "what a build begins with", whole, calls)
    if program:
        yield Part(folder / "app.c", f"a program that runs {models[0].path} once", program)
    if system.name == "bazel":
        yield from _workspace(folder, system)
    yield _ignored(folder, system, is_new=not main.exists())


def _ignored(folder: Path, system: BuildSystem, *, is_new: bool) -> Part:
    """The file of what version control ignores. is_new: whether the main file is ours."""
    lines = system.ignored if is_new else tuple(filter(None, [system.outputs]))
    needs = {line.removesuffix("models/"): line for line in lines}
    text = "".join(f"{line}\n" for line in ("# made by ansor-deploy", *lines))
    return Part(folder / ".gitignore", "what builds leave here", text, needs)


def _workspace(folder: Path, system: BuildSystem) -> Iterator[Part]:
    """The files by which Bazel finds our rules: the workspace's existing ones, or new ones."""
    files = ("MODULE.bazel", "WORKSPACE")
    there = [name for name in files if (folder / name).exists()]
    for name in there or files:
        hook = system.template(f"{name}.hook")
        text = _filled(system.template(name), {"HOOK": hook.rstrip()})
        if name == "WORKSPACE" and _DEBIANS_BAZEL.is_dir():
            text += system.template("WORKSPACE.debian")
        yield Part(folder / name, "where Bazel finds the rules", text, {'"ansor_deploy"': hook})
    ignored = f"{_BAZEL_HOOKS}\n"
    path = folder / ".bazelignore"
    yield Part(path, "the rules are no part of the sources", ignored, {ignored: ignored})
    yield Part(folder / _BAZEL_HOOKS, "the rules", link=hook_folder("bazel"))


def _filled(template: str, names: Mapping[str, str]) -> str:
    """A template with each @NAME@ replaced by its value in `names`."""
    return re.sub(r"@([A-Z]+)@", lambda found: names[found[1]], template)
