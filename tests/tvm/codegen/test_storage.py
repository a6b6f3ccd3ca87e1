"""Where the tensors of a run lie, whatever a model's outputs are."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported

from ansor_deploy.codegen.executable import memory_of_tensors
from ansor_deploy.codegen.memory.figures import total
from ansor_deploy.runtime.model import Model

SHAPE = (6, 10)
WEIGHT = graphs.randn(1, 10, 10)


def chain(*outputs, last=()):
    """A product, and what follows it: `a` is made by a kernel, `b` reads it."""
    nodes = [graphs.node("MatMul", "x w", "a"), graphs.node("Softmax", "a", "b"), *last]
    return graphs.model(nodes, {"x": SHAPE}, outputs, constants={"w": WEIGHT})


def view(name):
    return graphs.node("Flatten", "b", name, axis=0)


CASES = {
    "one": chain("b"),
    "used by another": chain("a", "b"),
    "a view": chain("flat", last=[view("flat")]),
    "a view and what it is of": chain("flat", "b", last=[view("flat")]),
    "the same twice": chain("b", "same", last=[graphs.node("Identity", "b", "same")]),
    "views twice": chain("flat", "too", last=[view("flat"), view("too")]),
    "an input": chain("b", "own", last=[graphs.node("Identity", "x", "own")]),
    "a view of an input": chain("b", "own", last=[graphs.node("Flatten", "x", "own", axis=0)]),
    "a constant": chain("b", "own", last=[graphs.node("Identity", "w", "own")]),
    "used after it is a view": chain("c", last=[view("flat"), graphs.node("Relu", "flat", "c")]),
}


def branches():
    """A model whose result one of two branches makes."""

    first, second = (
        [graphs.node(op, "a", f"{name}_"), graphs.node("Softmax", f"{name}_", name)]
        for name, op in (("p", "Relu"), ("q", "Neg"))
    )
    nodes = [
        graphs.node("MatMul", "x w", "a"),
        graphs.node("ReduceSum", "x", "sum", keepdims=0),
        graphs.node("Greater", "sum zero", "yes"),
        graphs.either("yes", "y", first, second, kind=("float32", SHAPE)),
        graphs.node("Add", "y a", "z"),
    ]
    return graphs.model(
        nodes, {"x": SHAPE}, ["y", "z"], constants={"w": WEIGHT, "zero": np.float32(0)}
    )


def loaded(proto, folder):
    """The model as a library, loaded."""
    made = compiled(proto)
    made.export(path := folder / "model.so", HOST)
    io = imported(proto).interfaces[0].to_json()
    return Model(path, {**io, "target": HOST.to_json()})


@pytest.mark.parametrize("name", CASES)
def test_results_are_right_and_share_no_memory(name, tmp_path):
    model, proto = loaded(CASES[name], tmp_path), CASES[name]
    given = graphs.random_feeds(proto)
    before = {key: one.copy() for key, one in given.items()}
    made = model(**given)
    first = {key: one.copy() for key, one in made.items()}
    again = model(**{key: one + 1 for key, one in given.items()})
    arrays = [*given.values(), *made.values(), *again.values()]
    for at, one in enumerate(arrays):
        assert not any(np.may_share_memory(one, other) for other in arrays[:at])
    for key, want in zip(made, graphs.run(proto, before), strict=True):
        np.testing.assert_allclose(made[key], want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(made[key], first[key])
        made[key][...] = 0  # the caller's own


def test_branches_keep_what_follows_them_alive(tmp_path):
    proto = branches()
    model = loaded(proto, tmp_path)
    for x in (graphs.randn(3, *SHAPE), -graphs.randn(3, *SHAPE)):
        for have, want in zip(model(x=x).values(), graphs.run(proto, {"x": x}), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_the_report_is_of_what_lives_at_once():
    proto = graphs.dense(1024, 2048, 512, 16, rows=8)
    memory = memory_of_tensors(imported(proto), HOST)
    assert total(memory.storage) == 4 * 8 * (2048 + 512 + 16)
