"""Pages in a real browser, as their readers have them: opened from disk, or served on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers.hurry import short_times

# It asks for nothing of the network by itself, as the tests' fence would not hold it back.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session", autouse=True)
def _short_times() -> Iterator[None]:
    """A page's figures are looked at, and not how good they are."""
    with short_times():
        yield


@dataclass
class Seen:
    """A page, what its console said against it, and what it asked for beside itself."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def serious(self) -> list[str]:
        """What axe finds that keeps some people from reading the page."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {node['html'][:200]}"
            for one in found
            if one["impact"] in {"serious", "critical"}
            for node in one["nodes"]
        ]

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as made:
        chromium = made.chromium.launch(executable_path=path, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(params=["light", "dark", "narrow"])
def seen(browser: Any, request: pytest.FixtureRequest) -> Iterator[Seen]:
    """An empty page, as wide as a screen or a phone."""
    narrow, dark = request.param == "narrow", request.param == "dark"
    size = {"width": 390 if narrow else 1280, "height": 800}
    context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light")
    seen = Seen(context.new_page())
    seen.page.on("console", lambda said: seen.complaints.append(said.text))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("request", lambda asked: seen.requests.append(asked.url))
    yield seen
    context.close()
