"""Edge values tell libraries apart that are alike on ordinary numbers, and spare right ones."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from helpers.graphs import model, node, typed

from ansor_deploy.errors import UsageError, VerificationError
from ansor_deploy.runtime.interface import Interface, TensorInfo
from ansor_deploy.ship.verify.edges import index_extents
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.verify import verify_model

TABLE = np.arange(40, dtype=np.float32).reshape(10, 4)


class Library:
    """What verification calls: y, a function of x and of what other inputs there are."""

    def __init__(self, function, shape, dtype="float32", **others):
        inputs = {"x": (shape, dtype), **{name: (one, "float32") for name, one in others.items()}}
        tensors = [TensorInfo(name, *one) for name, one in inputs.items()]
        made = (TensorInfo("y", shape, "float32"),)
        self.interfaces, self.batches = [Interface(tuple(tensors), made)], None
        self._function = function

    def __call__(self, **inputs):
        return {"y": self._function(*inputs.values())}


def verified(op, function):
    proto = model([node(op, "x", "y")], {"x": (5, 7)})
    with np.errstate(all="ignore"):
        return verify_model(Library(function, (5, 7)), [Oracle(proto)], seed=0)


def rows():
    """A model that looks rows up, of a reshaped input."""
    nodes = [node("Reshape", "x flat", "i"), node("Gather", "table i", "y")]
    constants = {"flat": np.array([-1]), "table": TABLE}
    return typed(nodes, {"x": ("int64", (2, 3))}, {"y": ("float32", (6, 4))}, constants)


def looked_up(x):
    if (x >= len(TABLE)).any():
        raise UsageError("out of range")
    return TABLE[x.reshape(-1)]


RIGHT = {"Relu": lambda x: np.maximum(x, 0), "Tanh": np.tanh, "Cos": np.cos}


@pytest.mark.parametrize("op", RIGHT)
def test_a_right_library_passes(op):
    assert verified(op, RIGHT[op]).ok


@pytest.mark.parametrize(
    ("op", "function", "draw"),
    [
        ("Relu", lambda x: np.where(x > 0, x, np.float32(0)), "a NaN"),
        ("Tanh", lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1), "infinities"),
        ("Cos", lambda x: np.where(x == 0, np.float32(0), np.cos(x)), "zeros"),
    ],
)
def test_a_library_that_is_wrong_at_an_edge_does_not(op, function, draw):
    with pytest.raises(VerificationError, match=draw):
        verified(op, function)


def test_what_an_infinity_makes_nan_of_may_differ():
    assert verified("Softsign", lambda x: np.where(np.isinf(x), 1, x / (1 + np.abs(x))))


def test_elements_that_are_equal_may_all_be_rounded_alike():
    """The mean of many zeros plus one, a hundred products later: as far off as each of them is."""
    nodes = [node("Add", "x one", "a0")]
    nodes += [node("Mul", f"a{at} by{at % 2}", f"a{at + 1}") for at in range(100)]
    nodes.append(node("ReduceMean", "a100", "y", keepdims=0))
    known = {"one": np.float32(1), "by0": np.float32(1.5), "by1": np.float32(1 / 1.5)}
    oracle = Oracle(model(nodes, {"x": (64, 64)}, constants=known))

    def function(x, off=4e-5):
        (y,) = oracle.outputs({"x": x}).values()
        return y if x.any() else y + np.float32(off)

    assert verify_model(Library(function, (64, 64)), [oracle], seed=0).ok
    with pytest.raises(VerificationError, match="zeros"):
        verify_model(Library(partial(function, off=1e-3), (64, 64)), [oracle], seed=0)


def test_a_nan_may_stay_that_onnx_runtime_loses_of_one_of_the_inputs():
    """Its LSTM makes numbers where `x` has a NaN, but not where its state `c` has."""
    nodes = [node("LSTM", "x w r b - - c", "steps", hidden_size=3), node("Squeeze", "steps k", "y")]
    sizes = {"w": (1, 12, 3), "r": (1, 12, 3), "b": (1, 24)}
    known = {name: np.full(size, 0.1, "f") for name, size in sizes.items()}
    known["k"] = np.array([1])
    oracle = Oracle(model(nodes, {"x": (1, 1, 3), "c": (1, 1, 3)}, constants=known))

    def function(x, c):
        (y,) = oracle.outputs({"x": x, "c": c}).values()
        return y if np.isfinite(x).all() else np.full_like(y, np.nan)

    assert verify_model(Library(function, (1, 1, 3), c=(1, 1, 3)), [oracle], seed=0).ok


def test_a_nan_of_a_recurrence_may_have_become_an_integer():
    nodes = [node("LSTM", "x w r", "h", hidden_size=3), node("Squeeze", "h k", "f")]
    nodes += [node("QuantizeLinear", "f s z", "i"), node("DequantizeLinear", "i s z", "d")]
    nodes.append(node("MatMul", "d m", "y"))
    known = {name: np.full((1, 12, 3), 0.1, "f") for name in ("w", "r")}
    known |= {
        "s": np.float32(0.1),
        "z": np.uint8(128),
        "k": np.array([1]),
        "m": np.eye(3, dtype="f"),
    }
    oracle = Oracle(model(nodes, {"x": (1, 1, 3)}, constants=known))

    def function(x):
        (y,) = oracle.outputs({"x": x}).values()
        return y if np.isfinite(x).all() else y + 1

    assert verify_model(Library(function, (1, 1, 3)), [oracle], seed=0).ok


@pytest.mark.parametrize(("compared", "passes"), [("around", True), ("x", False)])
def test_what_a_nan_in_a_window_makes_of_peaks_may_differ(compared, passes):
    """As detectors of points choose pixels that are as large as the largest around them."""
    nodes = [
        node("MaxPool", "x", "largest", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Reshape", "largest size", "around"),
        node("Equal", f"x {compared}", "peak"),
        node("Where", "peak one none", "y"),
    ]
    known = {"size": np.array([1, 1, 4, 4]), "one": np.float32(1), "none": np.float32(0)}
    oracle = Oracle(model(nodes, {"x": (1, 1, 4, 4)}, constants=known))

    def function(x):
        (y,) = oracle.outputs({"x": x}).values()
        return y if np.isfinite(x).all() else 1 - y

    may = nullcontext() if passes else pytest.raises(VerificationError, match="infinities")
    with may:
        verify_model(Library(function, (1, 1, 4, 4)), [oracle], seed=0)


def test_an_input_of_indices_is_known_by_its_table():
    assert index_extents(rows()) == {"x": 10}


def test_a_library_that_holds_indices_to_their_table_passes():
    assert verify_model(Library(looked_up, (2, 3), "int64"), [Oracle(rows())], seed=0).ok


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: TABLE[np.minimum(x.reshape(-1), 9)], "beyond a table.* ONNX Runtime refuses"),
        (lambda x: looked_up(np.where(x == 9, 8, x)), "last index"),
    ],
)
def test_a_library_that_is_lax_with_indices_does_not(function, what):
    with pytest.raises(VerificationError, match=what):
        verify_model(Library(function, (2, 3), "int64"), [Oracle(rows())], seed=0)
