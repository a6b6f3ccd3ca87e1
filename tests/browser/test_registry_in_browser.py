"""A registry's pages as their readers have them."""

from itertools import chain

import pytest
from helpers.browsing import MODELS, add_all, browsing
from helpers.registry_samples import key

PLACES = (
    "/",
    "/operators",
    "/best",
    "/curves",
    "/trends",
    f"/tasks/{key(0).workload[:12]}",
    f"/models/{MODELS[1][:12]}",
    "/registry",
    "/registry/best_records?tvm=0.27.0",
    "/registry/best?op=conv",
    "/registry/builds/1",
    "/registry?sql=select+1",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("browsed") / "registry.db"
    add_all(path)
    with browsing(path) as (url, _):
        yield url.rstrip("/")


def test_everyone_can_read_them(address, seen):
    for place in PLACES:
        seen.page.goto(address + place)
        assert seen.serious() == [], place
        assert seen.overflow <= 0, place
    assert seen.complaints == []
    assert {asked.startswith(address) for asked in seen.requests} == {True}


def test_a_task_is_two_steps_from_the_first_page(address, seen):
    seen.page.goto(f"{address}/")
    links = seen.page.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    ahead = [address + link for link in links if link.startswith("/") and "/registry/" not in link]
    found = chain.from_iterable(linked(seen.page, place) for place in dict.fromkeys(ahead))
    assert any(link.startswith("/tasks/") for link in found)


def test_a_task_is_reached_by_keyboard(address, seen):
    seen.page.goto(f"{address}/best")
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    seen.page.keyboard.press("Enter")
    for _ in range(5):  # target, operator, button, the table, its first key
        seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/tasks/*")


def linked(page, place):
    page.goto(place)
    return page.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
