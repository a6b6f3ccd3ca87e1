"""The build systems that `init` supports: their files, and how each declares a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...target import HOST

LOCK = "records.lock"
_START = Path(__file__).resolve().parent / "start"
# Names that the program's own targets, or those of a build system, have already.
_TAKEN = {"all", "app", "clean", "help", "install", "test", "tune"}


@dataclass(frozen=True)
class Model:
    """A model of a project. path: that in the project. external: files beside it with weights.

    shapes: those of its inputs, as `--input-shape` takes them.
    """

    path: Path
    target: str
    shapes: tuple[str, ...] = ()
    external: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """The name of its library, its header and its target in a build."""
        name = re.sub(r"\W", "_", self.path.stem, flags=re.ASCII)
        return f"{name}_model" if name in _TAKEN else name

    @property
    def options(self) -> str:
        """Options for `build` and `tune`."""
        return " ".join(f"--input-shape {shape}" for shape in self.shapes)


@dataclass(frozen=True)
class BuildSystem:
    """A build system. mains: possible names of its main file; the first is the one we write.

    marks: other files that show that a folder uses it. declare: the declaration of a model in its
    files; `sign` is a part of it that identifies the model. models: the file for declarations,
    which the main file includes by the line `include`; "" where they are in the main file. ignored:
    files that our build leaves in the folder. outputs: where the models' outputs lie in an existing
    build; "" where that build decides. build, run, tune: the commands that build, that build and
    run the program, and that tune `model`; "" where the tool's own command does.
    """

    name: str
    mains: tuple[str, ...]
    marks: tuple[str, ...]
    declare: Callable[[Model], str]
    sign: str
    models: str
    include: str
    ignored: tuple[str, ...]
    outputs: str
    build: str
    run: str
    tune: str

    def template(self, name: str) -> str:
        """The text of a file before names are filled in."""
        return (_START / self.name / name).read_text(encoding="utf-8")

    def main(self, folder: Path) -> Path:
        """The main file of a folder's build, whether it exists or not."""
        paths = [folder / name for name in self.mains]
        return next((path for path in paths if path.exists()), paths[0])

    def shows_in(self, folder: Path) -> str:
        """A file that shows that a folder uses this build system; "" if there is none."""
        return next((n for n in (*self.mains, *self.marks) if (folder / n).exists()), "")


def _make_call(model: Model) -> str:
    path, target = (text.replace(" ", "\\ ") for text in (str(model.path), model.target))
    words = [model.name, path, target, LOCK]
    words += [model.options.replace(",", "$(ansor_deploy_comma)")] if model.shapes else []
    return f"$(eval $(call ansor_deploy_model,{','.join(words)}))"


def _cmake_call(model: Model) -> str:
    target = f'\n  TARGET "{model.target}"' if model.target != HOST else ""
    options = f"\n  OPTIONS {model.options}" if model.shapes else ""
    named = f'NAME {model.name}\n  MODEL "{model.path}"\n  LOCK {LOCK}'
    return f"ansor_deploy_model(\n  {named}{target}{options})"


def _ninja_edge(model: Model) -> str:
    library = f"build/models/{model.name}"
    beside = " ".join(library + suffix for suffix in (".h", ".json", ".intoto.json"))
    path = str(model.path).replace(" ", "$ ")
    options = f"\n  options = {model.options}" if model.shapes else ""
    edge = f"build {library}.so | {beside}: ansor_deploy_model {path}"
    return f"{edge}\n  target = {model.target}{options}"


def _bazel_rule(model: Model) -> str:
    fields = {"name": model.name, "lock": LOCK, "model": str(model.path)}
    if model.target != HOST:
        key = "descriptor" if model.target.endswith(".toml") else "target"
        fields[key] = model.target
    lines = [f"    {name} = {json.dumps(value)}," for name, value in fields.items()]
    if model.external:
        lines.append(f"    data = {json.dumps([str(path) for path in model.external])},")
    if model.shapes:
        shapes = dict(shape.split("=", 1) for shape in model.shapes)
        lines.append(f"    input_shapes = {json.dumps(shapes)},")
    return "\n".join(["ansor_model(", *lines, ")"])


SYSTEMS = {
    one.name: one
    for one in (
        BuildSystem(
            name="make",
            mains=("Makefile", "makefile", "GNUmakefile"),
            marks=(),
            declare=_make_call,
            sign="ansor_deploy_model,{name},",
            models="models.mk",
            include="include models.mk",
            ignored=("/app", "/app.o", "/build/"),
            outputs="/build/models/",
            build="make",
            run="make && ./app",
            tune="make tune",
        ),
        BuildSystem(
            name="cmake",
            mains=("CMakeLists.txt",),
            marks=(),
            declare=_cmake_call,
            sign="NAME {name}\n",
            models="models.cmake",
            include="include(models.cmake)",
            ignored=("/build/",),
            outputs="",
            build="cmake -B build && cmake --build build",
            run="cmake -B build && cmake --build build && build/app",
            tune="cmake --build build --target tune",
        ),
        BuildSystem(
            name="ninja",
            mains=("build.ninja",),
            marks=(),
            declare=_ninja_edge,
            sign="/{name}.so ",
            models="models.ninja",
            include="include models.ninja",
            ignored=("/app", "/build/"),
            outputs="/build/models/",
            build="ninja",
            run="ninja && ./app",
            tune="",
        ),
        BuildSystem(
            name="bazel",
            mains=("BUILD", "BUILD.bazel"),
            marks=("MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"),
            declare=_bazel_rule,
            sign='name = "{name}"',
            models="",
            include="",
            ignored=("/bazel-*", "/third_party/ansor_deploy"),
            outputs="/third_party/ansor_deploy",
            build="bazel build //...",
            run="bazel run //:app",
            tune="bazel run //:{model.name}_tune",
        ),
    )
}


def system_of(folder: Path, name: str | None) -> BuildSystem:
    """The build system of this name, else that of the folder, else make.

    UsageError where the folder has files of several.
    """
    if name:
        return SYSTEMS[name]
    there = {each.name: file for each in SYSTEMS.values() if (file := each.shows_in(folder))}
    if len(there) > 1:
        hint = f"say for which: --build {' or --build '.join(there)}"
        raise UsageError(f"there are {' and '.join(there.values())} here", hint)
    return SYSTEMS[next(iter(there), "make")]
