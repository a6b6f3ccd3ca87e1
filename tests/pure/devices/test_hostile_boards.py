"""A board may say anything: it is lost at once, or what it says is passed over, and no more."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from helpers.hostile_frames import Tape, answer, cases, listen, mutants, valid

from ansor_deploy.devices import board as boards
from ansor_deploy.devices.agent_client import AgentClient
from ansor_deploy.errors import DeviceError, DeviceLost

CASES = [*cases()]


def test_what_a_good_board_says():
    assert listen(valid()) == "done"


@pytest.mark.parametrize(("what", "session", "end"), CASES, ids=[case[0] for case in CASES])
def test_what_no_board_should_say(what, session, end):
    found = listen(session)
    assert found.partition(":")[0] == end, found
    assert found.isprintable()
    assert len(found) < 2500
    assert "no answer in" not in found  # a listener that died would be waited for
    assert "no agent in" not in found


def test_a_good_session_with_random_faults():
    with ThreadPoolExecutor(16) as threads:
        found = [*threads.map(partial(listen, patience=0.2), itertools.islice(mutants(0), 100))]
    assert all(text.isprintable() for text in found)
    assert {text.partition(":")[0] for text in found} == {"done", "lost"}


class Fails(Tape):
    """A stream whose reading fails as nobody foresaw."""

    def read(self, count, timeout):
        raise self.fault


@pytest.mark.parametrize("fault", [RecursionError("deep"), MemoryError(), AttributeError("x")])
def test_a_listener_that_ends_wakes_who_waits(fault):
    stream = Fails([b""], 60)
    stream.fault = fault
    with pytest.raises(DeviceLost, match="pi is lost: its agent speaks nonsense"):
        AgentClient("pi", stream).greeting(600, print)


def test_a_board_that_is_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(boards, "_ANSWER_SECONDS", 0.2)
    site = boards.BoardSite("pi", None, 4)
    site.join(Tape([*valid()[:2], answer(2, None)[:9]], 60))
    with pytest.raises(DeviceLost, match="pi is lost: no answer in 0 s"):
        site.get(site.scratch("x"), 1)
    with pytest.raises(DeviceLost, match="not connected"):
        site.scratch("x")


def test_a_file_that_comes_byte_by_byte_is_not_waited_for():
    parts = [answer(number, None, b"x") for number in range(2, 100)]
    site = boards.BoardSite("pi", None, 4)
    site.join(Tape([*valid()[:2], *parts], 60))
    with pytest.raises(DeviceLost, match="1 bytes of a file, not 99"):
        site.get(site.scratch("x"), 99)


def test_another_that_keeps_the_board_is_named_once(monkeypatch):
    heard = []
    client = AgentClient("pi", Tape(valid()[:1], 60))
    assert client.greeting(600, heard.append).pid == 7
    assert heard == ["process 1"]
    site = boards.BoardSite("pi", None, 4, waiting=heard.append, patience=0.1)
    greeting = valid()[0]
    with pytest.raises(DeviceError, match=r"in use by process 1, 0 s after"):
        site.join(Tape([greeting[: greeting.rindex(b"{") - 8]], 60))
