"""The commands on the pages of docs/, as a shell script for each page.

Fenced blocks of shell and Python run in the order of the page, unless a comment says otherwise:

    <!-- not run: WHY -->       the block is not run
    <!-- file: NAME -->         the block is written to that file, for later commands
    <!-- run: COMMAND -->       a command that the page does not show
    <!-- needs: PROGRAM ... --> the page only runs where these programs are

The folder /mnt/team, which a team shares, is in the page's own folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

SHOWN = ("", "text")  # languages of program output and of drawings
RUN = ("sh", "python")
_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\S*)\n(?P<text>.*?)\n *```$", re.DOTALL)
_NOTE = re.compile(r" *<!-- (?P<kind>[a-z ]+): (?P<said>.*?) -->", re.DOTALL)
_PART = re.compile(rf"^(?:{_FENCE.pattern}|{_NOTE.pattern})", re.DOTALL | re.MULTILINE)
_END = "END_OF_BLOCK"


@dataclass(frozen=True)
class Block:
    """A fenced block. line: of its page. notes: the comments before it, by kind."""

    line: int
    language: str
    text: str
    notes: dict[str, str]

    @property
    def fault(self) -> str:
        """Why the block is wrong: neither run nor marked; "" if all is well."""
        if self.language in SHOWN or self.language.startswith("{") or "file" in self.notes:
            return ""
        if "not run" in self.notes:
            return "" if self.notes["not run"] else "it does not say why it is not run"
        return "" if self.language in RUN else f"{self.language} is neither run nor marked"

    @property
    def is_run(self) -> bool:
        """Whether it is a part of the page's script."""
        return self.language in RUN and not {"file", "not run"} & set(self.notes)


def parts(page: Path) -> list[Block | str]:
    """The blocks of a page, and the commands that it does not show, in order."""
    text = page.read_text(encoding="utf-8")
    found: list[Block | str] = []
    notes: dict[str, str] = {}
    for part in _PART.finditer(text):
        if part["kind"] == "run":
            found.append(part["said"])
        elif part["kind"]:
            notes[part["kind"]] = part["said"]
        else:
            found.append(_block(part, text.count("\n", 0, part.start()) + 1, notes))
            notes = {}
    return found


def _block(part: re.Match[str], line: int, notes: dict[str, str]) -> Block:
    body = re.sub(rf"^{part['indent']}", "", part["text"], flags=re.MULTILINE)
    return Block(line, part["language"], body, notes)


def needs(page: Path) -> list[str]:
    """Programs without which a page is not run."""
    blocks = [part for part in parts(page) if isinstance(part, Block)]
    return " ".join(block.notes.get("needs", "") for block in blocks).split()


def script(page: Path, prelude: str = "") -> str:
    """The script of a page, or "" if it runs nothing. prelude: Python before each Python block.

    A block of Python sees the names of those before it.
    """
    lines, known = [], [prelude]
    for part in parts(page):
        if isinstance(part, str):
            lines.append(part)
        elif "file" in part.notes:
            lines += _written(part.notes["file"], part.text)
        elif part.is_run and part.language == "sh":
            lines += [f": line {part.line}", part.text]
        elif part.is_run:
            known.append(part.text)
            lines += [f": line {part.line}", *_fed("python -", "\n".join(known))]
    return "\n".join(["set -eux", *lines, ""]).replace("/mnt/team", "mnt/team") if lines else ""


def _written(name: str, text: str) -> list[str]:
    folder = str(Path(name).parent)
    return [f"mkdir -p {folder}", *_fed(f"cat > {name}", text)]


def _fed(command: str, text: str) -> list[str]:
    return [f"{command} << '{_END}'", text, _END]
