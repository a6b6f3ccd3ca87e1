"""A report and a comparison as their readers have them."""

import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer

from ansor_deploy.views.page.page import QUANTISATION, SECTIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A network, tuned a little, its report, and what changed since it was untuned."""
    folder = tmp_path_factory.mktemp("net")
    onnx.save(graphs.dense(256, 512, 10, rows=64), folder / "net.onnx")
    answer(folder, "build", "net.onnx", "--trials", 0, "-o", "old.so")
    words = ("--trials", 8, "--min-impact", "0%", "--report", "net.html")
    answer(folder, "build", "net.onnx", *words)
    answer(folder, "compare", "old.so", "net.so", "-o", "changes.html", "--time", "0.2s")
    return folder


@pytest.mark.parametrize("name", ["net.html", "changes.html"])
def test_it_opens_from_disk_and_asks_for_nothing(folder, seen, name):
    address = (folder / name).as_uri()
    seen.page.goto(address)
    assert seen.requests == [address]
    assert seen.complaints == []
    assert seen.overflow <= 0
    assert seen.serious() == []


def test_every_section_is_shown(folder, seen):
    seen.page.goto((folder / "net.html").as_uri())
    shown = {key: text for key, (text, _) in SECTIONS.items() if key != QUANTISATION}
    for key, text in shown.items():
        heading = seen.page.locator(f"h2#{key}")
        assert heading.is_visible()
        assert heading.inner_text() == text
    pictures = seen.page.get_by_role("img").all()
    assert len(pictures) >= 3  # the roofline, and the model's curve over trials and seconds
    assert all(one.get_attribute("aria-label") for one in pictures)


def test_a_section_is_reached_by_keyboard(folder, seen):
    seen.page.goto((folder / "net.html").as_uri())
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url(f"**/net.html#{list(SECTIONS)[1]}")


def test_it_prints(folder, seen):
    seen.page.goto((folder / "net.html").as_uri())
    seen.page.emulate_media(media="print")
    assert not seen.page.get_by_role("navigation").is_visible()
    assert seen.page.pdf().startswith(b"%PDF")
