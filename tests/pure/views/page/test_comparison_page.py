"""A comparison as a page: what changed, by how much, and that the file stands alone."""

import re

from ansor_deploy.ship.race.changes import Changes, MadeBy, TaskChange
from ansor_deploy.ship.race.race import race_of
from ansor_deploy.views.page.comparison import comparison_page

BESIDE = race_of("old.so", 1.0, 2.0, 0.5, (0.45, 0.55), 20)
TASKS = (
    TaskChange("a" * 64, "conv2d <b>", "default", "r1", 1.5, 0.75),
    TaskChange("b" * 64, "relu", "default", "default", 0.1, 0.1),
    TaskChange("c" * 64, "pool", None, "default", None, 0.2),
)
SIZES = {"library": (1_000_000, 2_000_000)}


def test_what_changed():
    text = comparison_page(Changes(BESIDE, SIZES, TASKS), "old.so", "new.so")
    assert "<dd>2.00x faster<small>1.82x to 2.22x, 99%</small>" in text
    assert "<p>2.00x faster than old.so: 1.00 ms a run beside 2.00 ms" in text
    row = r"<code>aaaaaa</code></td><td[^>]*>conv2d &lt;b&gt;</td><td[^>]*>tuned</td>"
    assert re.search(row + r".*1.50 ms</td>.*750 us</td>.*-50%</td>", text)
    changed, same = text.index('id="changed"'), text.index('id="same"')
    assert changed < text.index("cccccc") < same < text.index("bbbbbb")
    assert "1 MB" in text
    assert "2 MB" in text
    assert not re.findall(r"<script|<link|<img|url\(|https?://", text)


def test_nothing_ran_and_nothing_changed():
    text = comparison_page(Changes(None, {}, TASKS[1:2]), "old.so", "new.so")
    assert "not timed: they do not run here" in text
    assert "There are none." in text


def test_what_made_them():
    made = (MadeBy("rule <i>.py", "a" * 64, None),)
    text = comparison_page(Changes(None, {}, (), made), "old.so", "new.so")
    assert "rule &lt;i&gt;.py" in text
    assert "a" * 12 in text
    assert "a" * 13 not in text
