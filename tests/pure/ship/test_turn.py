"""One turn of two that are loaded: in which order they run, and what is counted."""

import pytest

from ansor_deploy.ship.race import turn
from ansor_deploy.ship.race.turn import alone, take, warm


class Library:
    """Takes so long for a run, and notes its name."""

    def __init__(self, seconds, name="", order=None):
        self.seconds, self.name, self.order = seconds, name, [] if order is None else order

    def times(self, inputs, runs):
        self.order.append(self.name)
        return [self.seconds] * runs


def sides(ours, theirs):
    order = []
    return (Library(ours, "ours", order), Library(theirs, "theirs", order)), order


def blocks(order):
    """Each name once for the calls that follow one another."""
    return [name for at, name in enumerate(order) if at == 0 or order[at - 1] != name]


def test_both_come_first_as_often():
    pair, order = sides(1e-3, 2e-3)
    found = take(pair, [{}], ours_first=True, pause=0.0)
    assert (found.ours, found.theirs) == (pytest.approx(1e-3), pytest.approx(2e-3))
    assert blocks(order) == ["ours", "theirs", "ours"]  # theirs has two blocks
    assert len(found.reference) == 4
    pair, order = sides(1e-3, 2e-3)
    take(pair, [{}], ours_first=False, pause=0.0)
    assert blocks(order) == ["theirs", "ours", "theirs"]


def test_what_is_slow_or_has_to_sleep_has_one_block(monkeypatch):
    pair, order = sides(1.0, 2.0)
    take(pair, [{}], ours_first=True, pause=0.0)
    assert order == ["ours", "theirs"]
    pauses = []
    monkeypatch.setattr(turn.time, "sleep", pauses.append)
    pair, order = sides(1e-3, 1e-3)
    found = take(pair, [{}], ours_first=False, pause=0.1)
    assert blocks(order) == ["theirs", "ours"]
    assert pauses == [0.1, 0.1]
    assert len(found.reference) == 2


def test_what_wakes_an_engine_is_not_counted(monkeypatch):
    monkeypatch.setattr(turn.time, "sleep", lambda seconds: None)

    class Sleepy(Library):
        def times(self, inputs, runs):
            return [9.0] if not self.order and not self.order.append("woke") else [1.0]

    found = take((Sleepy(0), Sleepy(0)), [{}], ours_first=True, pause=0.1)
    assert (found.ours, found.theirs) == (1.0, 1.0)


def test_of_several_shapes_no_times_are_added_up():
    class Growing(Library):
        def times(self, inputs, runs):
            return [inputs["rows"] * self.seconds] * runs

    feeds = [{"rows": 1}, {"rows": 4}]
    found = take((Growing(1e-3), Growing(2e-3)), feeds, ours_first=True, pause=0.0)
    assert (found.ours, found.theirs) == (pytest.approx(2e-3), pytest.approx(4e-3))  # the means
    assert found.shapes == pytest.approx((1e-3, 4e-3))
    assert alone(Growing(1e-3), feeds) == pytest.approx([1e-3, 4e-3])


def test_each_is_warmed_in_each_shape():
    pair, order = sides(1.0, 1.0)
    warm(pair, [{}, {}])
    assert order == ["ours", "ours", "theirs", "theirs"]
