"""Branches that ordinary inputs do not choose are verified, too."""

import numpy as np
import onnxruntime
import pytest
from helpers.graphs import either, node, typed

from ansor_deploy.runtime.interface import Interface, TensorInfo
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.verify import verify_model

X = ("float32", (4, 5))
CONDITIONS = {
    "a truth": (("bool", ()), []),
    "a number": (("int64", (1,)), [node("Equal", "s rate", "c")]),
    "a sign": (("float32", (3, 3)), [node("ReduceSum", "s", "n"), node("Greater", "n zero", "c")]),
    "two": (("bool", (1,)), [node("Not", "s", "m"), node("Or", "m other", "c")]),
}
EXTRA = {"two": {"other": ("bool", (1,))}}


def network(name, then="Sin", other="Cos"):
    (kind, shape), nodes = CONDITIONS[name]
    condition = "c" if nodes else "s"
    chosen = either(condition, "y", [node(then, "x", "a")], [node(other, "x", "b")])
    known = {"rate": np.array([16000]), "zero": np.zeros((), "f")}
    inputs = {"x": X, "s": (kind, shape), **EXTRA.get(name, {})}
    return typed([*nodes, chosen], inputs, {"y": X}, known)


class Library:
    """ONNX Runtime on a model, in the place of a library."""

    batches = None

    def __init__(self, proto, inputs):
        self._session = onnxruntime.InferenceSession(proto.SerializeToString())
        tensors = tuple(TensorInfo(name, shape, kind) for name, (kind, shape) in inputs.items())
        self.interfaces = [Interface(tensors, (TensorInfo("y", X[1], X[0]),))]

    def __call__(self, **inputs):
        return {"y": self._session.run(["y"], inputs)[0]}


def verified(name, **wrong):
    inputs = {"x": X, "s": CONDITIONS[name][0], **EXTRA.get(name, {})}
    return verify_model(Library(network(name, **wrong), inputs), [Oracle(network(name))], seed=0)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("branch", ["then", "other"])
def test_a_wrong_branch_is_found_whichever_it_is(name, branch):
    said = verified(name, **{branch: "Tan"})
    assert not said.ok


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_right_library_passes_in_both(name):
    said = verified(name)
    assert said.ok
    assert not said.unreached


def test_the_branch_that_is_wrong_is_named():
    said = verified("a number", then="Tan")
    assert said.wrong["y"].startswith("in the then_branch of 'y' output 'y' is off")
