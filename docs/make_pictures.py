"""Write the pictures of a terminal and a report: python docs/make_pictures.py squeezenet.onnx.

The commands run for real, in tmux, in a new folder with an empty registry. What the screen shows
becomes SVG, which loads nothing, so that it looks the same without a network; the report is opened
in Chromium. The figures in the pictures are this machine's: leave it alone meanwhile.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).with_name("pictures")
COLUMNS, LINES = 100, 30
SECONDS = 1200  # that a command may take
TOOL = "ansor-deploy"
REPORT = "report.html"
PAGES = {  # width and height of a window, and its colours
    "report-light": (1100, 760, "light"),
    "report-dark": (1100, 760, "dark"),
    "report-narrow": (390, 760, "dark"),
}


def tmux(*words: str) -> str:
    """What a command of a tmux of our own prints."""
    program = [shutil.which("tmux") or "tmux", "-L", f"pictures-{os.getpid()}", "-f", os.devnull]
    return subprocess.run([*program, *words], check=True, capture_output=True, text=True).stdout


def wait_for(pattern: str) -> None:
    """Wait until the screen shows it."""
    ends = time.monotonic() + SECONDS
    while not re.search(pattern, tmux("capture-pane", "-p")):
        if time.monotonic() > ends:
            raise TimeoutError(f"no {pattern} on the screen:\n{tmux('capture-pane', '-p')}")
        time.sleep(0.5)


def picture(name: str, title: str) -> None:
    """Write what the screen shows."""
    screen = Text.from_ansi(tmux("capture-pane", "-e", "-p").rstrip())
    console = Console(file=io.StringIO(), record=True, width=COLUMNS)
    console.print(screen, soft_wrap=True)
    drawn = console.export_svg(title=title)
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # they are elsewhere
    drawn = drawn.replace("Fira Code", "DejaVu Sans Mono")
    lines = [line.rstrip() for line in drawn.splitlines() if line.strip()]
    (FOLDER / f"terminal-{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")


def shoot(model: str) -> None:
    """Plan and build a model, and take the pictures on the way."""
    plan, build = (f"{TOOL} {words} {shlex.quote(model)}" for words in ("plan", "build"))
    tmux("send-keys", f"clear; {plan}", "Enter")
    wait_for(r"next +" + TOOL)
    picture("plan", plan)
    build += " --effort quick"
    tmux("send-keys", f"clear; {build}", "Enter")
    wait_for(r"steepest")
    picture("tuning", build)
    wait_for(rf"next +{TOOL} report")
    picture("build", build)
    tmux("send-keys", f"clear; {TOOL} report *.so -o {REPORT}", "Enter")
    wait_for(f"wrote {REPORT}")


def shoot_report(report: Path) -> None:
    """Take pictures of how a report begins."""
    flags = ["--no-sandbox", "--disable-background-networking"]
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        for name, (width, height, colours) in PAGES.items():
            window = {"width": width, "height": height}
            page = browser.new_page(viewport=window, color_scheme=colours)
            page.goto(report.as_uri())
            page.screenshot(path=FOLDER / f"{name}.png")


def run(model: Path) -> None:
    """Take all pictures of a model."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shutil.copy(model, folder)
        # Below it, the user's registry and settings are not found, and those of a test run neither.
        shell = f"env -u CI -u NO_COLOR HOME={folder} PS1= bash --norc"
        tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-c", folder, shell)
        try:
            shoot(model.name)
            shoot_report(Path(folder, REPORT))
        finally:
            tmux("kill-server")


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
