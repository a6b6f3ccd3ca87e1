"""A library beside another engine: what is said of them, and ONNX Runtime itself as one."""

from functools import partial
from itertools import islice

import numpy as np
import onnx
import pytest
from helpers import graphs

from ansor_deploy.build import beside, peers
from ansor_deploy.build.beside import TURNS_TO_TELL, Beside, in_turns, race
from ansor_deploy.build.peers import open_peer
from ansor_deploy.errors import ModelError, UsageError
from ansor_deploy.report.text import beside_text


class Library:
    """Takes so long for a run."""

    def __init__(self, seconds):
        self.seconds = seconds

    def times(self, inputs, runs):
        return [self.seconds] * runs


@pytest.fixture(autouse=True)
def awake(monkeypatch):
    monkeypatch.setattr(beside, "PAUSE_SECONDS", 0.0)


def test_both_run_in_turns_until_the_time_is_spent():
    found = race(Library(2e-3), Library(4e-3), "Other 1.0", {}, 0.3)
    assert (found.peer, found.ratio, found.interval) == ("Other 1.0", 0.5, (0.5, 0.5))
    assert (found.ours_ms, found.theirs_ms) == (2.0, 4.0)
    assert 8 <= found.turns <= beside.MOST_TURNS


def test_each_turn_begins_with_another_one():
    began = []

    def run(name):
        began.append(name)
        return 1.0

    turns = list(islice(in_turns([partial(run, "a"), partial(run, "b")]), 2))
    assert turns == [[1.0, 1.0]] * 2
    assert began == ["a", "a", "b", "b", "b", "b", "a", "a"]  # the first of a block wakes it


def test_what_wakes_an_engine_is_not_counted():
    seconds = iter([9.0, 1.0, 9.0, 1.0])
    assert list(islice(in_turns([partial(next, seconds)]), 2)) == [[1.0], [1.0]]


def test_one_turn_is_made_at_least():
    assert race(Library(1.0), Library(2.0), "X", {}, 0.0) == Beside("X", 1e3, 2e3, 0.5, None, 1)


@pytest.mark.parametrize(("seconds", "turns"), [(20.0, TURNS_TO_TELL), (10.0, 5)])
def test_a_slow_network_has_twice_the_time_to_tell(monkeypatch, seconds, turns):
    clock = [0.0]

    class Slow(Library):
        def times(self, inputs, runs):
            clock[0] += self.seconds * runs
            return super().times(inputs, runs)

    monkeypatch.setattr(beside.time, "monotonic", lambda: clock[0])
    found = race(Slow(1.0), Slow(1.0), "X", {}, seconds)  # a turn takes four seconds
    assert found.turns == turns


def test_a_comparison_takes_as_many_turns_as_tell():
    found = race(Library(1.0), Library(2.0), "X", {}, 0.0, TURNS_TO_TELL)
    assert (found.turns, found.interval) == (TURNS_TO_TELL, (0.5, 0.5))
    assert race(Library(1.0), Library(2.0), "X", {}, 0.0, TURNS_TO_TELL - 1).interval is None


@pytest.mark.parametrize(
    ("ratio", "interval", "said"),
    [
        (0.5, (0.4, 0.6), "2.00x faster than X: 1.00 ms a run beside 2.00 ms (0.40 to 0.60 of its"),
        (2.0, (1.8, 2.1), "2.00x slower than X"),
        (0.9, (0.7, 1.1), "as fast as X"),
        (0.5, None, "2.00x faster than X: 1.00 ms a run beside 2.00 ms (too few runs to be sure)"),
    ],
)
def test_what_is_said(ratio, interval, said):
    assert beside_text(Beside("X", 1.0, 2.0, ratio, interval, 8)).startswith(said)


def test_onnx_runtime_is_a_peer(tmp_path):
    onnx.save(graphs.batches(), tmp_path / "net.onnx")
    feed = {"x": np.ones((2, 3, 8, 8), np.float32)}
    for source in (tmp_path / "net.onnx", graphs.batches().SerializeToString()):
        peer = open_peer("onnxruntime", source, 1)
        assert peer.name.startswith("ONNX Runtime 1.")
        (expected,) = graphs.run(graphs.batches(), feed)
        np.testing.assert_allclose(peer.call(feed)[0], expected, rtol=1e-3, atol=1e-3)
        assert len(peer.times(feed, 3)) == 3


def test_a_model_that_an_engine_refuses():
    with pytest.raises(ModelError, match="onnxruntime refuses the model"):
        open_peer("onnxruntime", b"no model", 1)


def test_inputs_that_an_engine_refuses():
    peer = open_peer("onnxruntime", graphs.batches().SerializeToString(), 1)
    with pytest.raises(ModelError, match=r"ONNX Runtime 1\..* cannot run the model: .*rank"):
        peer.times({"x": np.ones(3, np.float32)}, 1)


def test_an_engine_that_is_not_installed(monkeypatch):
    def missing(model, threads):
        raise ImportError

    monkeypatch.setitem(peers._OPEN, "openvino", missing)
    with pytest.raises(UsageError, match="openvino is not installed") as caught:
        open_peer("openvino", b"", 1)
    assert "ansor-deploy[openvino]" in caught.value.hint
