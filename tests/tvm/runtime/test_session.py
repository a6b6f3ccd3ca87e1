"""A library in the place of ONNX Runtime's `InferenceSession`: it takes what that takes."""

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers.cli_inside import answer
from helpers.graphs import typed
from onnx import TensorProto, helper

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime import load

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FEED = {"self": X, "s": np.array(2, np.float32), "i": np.array([1, 2], np.int64)}


def graph():
    """Of a matrix, a scalar and integers, with a name that Python's methods have, too."""
    nodes = [
        helper.make_node("Mul", ["self", "s"], ["scaled"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["f", "s"], ["moved"]),
    ]
    takes = {"self": ("float32", (2, 3)), "s": ("float32", ()), "i": ("int64", (2,))}
    return typed(nodes, takes, {"scaled": ("float32", (2, 3)), "moved": ("float32", (2,))})


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A library, and the session that it takes the place of."""
    folder = tmp_path_factory.mktemp("session")
    onnx.save(graph(), folder / "net.onnx")
    answer(folder, "build", "net.onnx", "--trials", 0, "--beside", "none")
    return load(folder / "net.so"), onnxruntime.InferenceSession(str(folder / "net.onnx"))


@pytest.mark.parametrize(
    ("names", "feed"),
    [
        (None, FEED),
        ([], FEED),
        (["moved", "scaled"], FEED),
        (("moved", "moved"), FEED),
        (None, {**FEED, "self": X.tolist(), "i": [1, 2]}),
        (None, {**FEED, "s": np.array([2], np.float32)}),
        (None, {**FEED, "self": np.asfortranarray(X)}),
        (None, {**FEED, "self": np.zeros((2, 6), np.float32)[:, ::2]}),
        (None, {**FEED, "self": X[::-1]}),
        (None, {**FEED, "self": np.broadcast_to(np.float32(1), (2, 3))}),
        (None, {**FEED, "self": np.ndarray((2, 3), np.float32, bytearray(25), offset=1)}),
    ],
)
def test_what_one_takes_the_other_does(both, names, feed):
    have, want = (one.run(names, feed, None) for one in both)
    assert [one.dtype for one in have] == [one.dtype for one in want]
    for ours, theirs in zip(have, want, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("names", "feed", "says"),
    [
        (["q"], FEED, "no such output: q"),
        ("moved", FEED, "'moved' is no list of outputs"),
        (None, {**FEED, "q": X}, "q: no such input"),
        (None, {"self": X}, "s: missing; i: missing"),
        (None, {**FEED, "self": X.astype(np.float64)}, r"self: float64\[2, 3\] given"),
        (None, {**FEED, "i": FEED["i"].astype(np.int32)}, r"i: int32\[2\] given"),
        (None, {**FEED, "self": X.T}, r"self: float32\[3, 2\] given"),
        (None, {**FEED, "self": X[None]}, r"self: float32\[1, 2, 3\] given"),
        (None, {**FEED, "s": 2.0}, "s: a float, and no array"),
        (None, {**FEED, "self": [["a", "b"]]}, "self: a list that is no float32"),
    ],
)
def test_what_one_refuses_the_other_does(both, names, feed, says):
    ours, theirs = both
    with pytest.raises(UsageError, match=says):
        ours.run(names, feed)
    with pytest.raises(Exception):  # noqa: B017, PT011 - it has a class for each
        theirs.run(names, feed)


def test_it_says_what_it_takes_and_gives(both):
    for name in ("get_inputs", "get_outputs"):
        have, want = ([(a.name, a.shape, a.type) for a in getattr(one, name)()] for one in both)
        assert have == want
    with pytest.raises(UsageError, match="i: a list that is no int64"):
        both[0].run(None, {**FEED, "i": [1.5, 2.0]})  # which ONNX Runtime cuts to 1
    with pytest.raises(UsageError, match="no options of a run"):
        both[0].run(None, FEED, onnxruntime.RunOptions())
