"""The registry's pages as a browser shows them: ours, and Datasette's in our style."""

import pytest
from helpers.browsing import MODELS, add_all, browsing
from helpers.registry_samples import key

PLACES = [
    "",
    "operators",
    "best",
    "curves",
    f"models/{MODELS[1][:12]}",
    f"tasks/{key(0).workload[:12]}",
    "registry",
    "registry/standings?tvm=0.27.0",
    "registry/best?op=conv",
    "registry/builds/1",
    "registry?sql=select+1",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("browsed") / "registry.db"
    add_all(path)
    with browsing(path) as (url, _):
        yield url


@pytest.mark.parametrize("place", PLACES)
def test_a_page_is_read_by_everyone_and_asks_nobody_else(address, seen, place):
    seen.page.goto(address + place)
    assert all(asked.startswith(address) for asked in seen.requests)
    assert seen.complaints == []
    assert seen.overflow <= 0
    assert seen.serious() == []


def test_a_task_is_reached_by_keyboard(address, seen):
    seen.page.goto(address + "best")
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    seen.page.keyboard.press("Enter")
    for _ in range(5):  # target, operator, button, the table, its first key
        seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/tasks/*")
    assert seen.page.get_by_role("heading", level=1).inner_text().startswith("conv2d")
