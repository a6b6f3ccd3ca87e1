"""The small files that turn a folder into a project; none of them replaces another."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..project import MARKER, Project
from ..system.atomic_file import write_whole

# Of a path that stands in a call which make expands, evaluates, and gives to a shell.
_PLAIN = re.compile(r"[\w./][\w./ +@=-]*")
MAKEFILE = "models.mk"
_IGNORED = "/build/models/"
_SETTINGS = """\
# Settings of ansor-deploy for this folder and those below it. Targets of your own go into
# targets/NAME.toml, rules into rules/NAME.py.
target = "{target}"
"""


@dataclass(frozen=True)
class Addition:
    """Text for the end of a file, which need not be there yet. path: below the project's folder."""

    path: Path
    text: str

    @property
    def verb(self) -> str:
        """How the change is announced: write a file, or add to it."""
        return "add to" if self.path.exists() else "write"

    def make(self) -> None:
        """Write it; what is in the file stays."""
        before = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        if before and not before.endswith("\n"):
            before += "\n"
        write_whole(self.path, (before + self.text).encode())


def additions(folder: Path, target: str, models: Sequence[Path]) -> Iterator[Addition]:
    """What a folder lacks. target: to build for. models: to build, by their paths below it.

    UsageError where make would read another name than that of a model or target.
    """
    for name in (*map(str, models), target):
        if not _PLAIN.fullmatch(name):
            hint = "Rename it: letters, digits, spaces and . / _ + @ - = are read as they are."
            raise UsageError(f"make cannot be given the name {name!r}", hint)
    if Project.find(folder).root is None:
        yield Addition(folder / MARKER, _SETTINGS.format(target=target))
    if not (folder / MAKEFILE).exists():
        yield Addition(folder / MAKEFILE, _makefile(target, models))
    ignore = folder / ".gitignore"
    lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.exists() else []
    if _IGNORED not in lines:
        yield Addition(ignore, f"# made by ansor-deploy\n{_IGNORED}\n")


def _makefile(target: str, models: Sequence[Path]) -> str:
    named = models or [Path("model.onnx")]
    comment = "" if models else "# "
    calls = "".join(f"{comment}{_call(model, target)}\n" for model in named)
    return f"""\
# In the Makefile: include {MAKEFILE}
# `make tune` measures and writes the lock, which belongs into version control.
include $(shell ansor-deploy hooks make)/ansor_deploy.mk

{calls}"""


def _call(model: Path, target: str) -> str:
    name = re.sub(r"\W", "_", model.stem, flags=re.ASCII)
    path, machine = (text.replace(" ", "\\ ") for text in (str(model), target))
    return f"$(eval $(call ansor_deploy_model,{name},{path},{machine},records.lock))"
