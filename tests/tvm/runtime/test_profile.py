"""A profile of a library: its kernels in the network's order, and what a run takes beside."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, imported
from msgspec import to_builtins

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.errors import UsageError
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.labels import calls
from ansor_deploy.runtime.model import Model
from ansor_deploy.runtime.profile import profile
from ansor_deploy.ship.describe import kernels, other_places
from ansor_deploy.ship.verify.draws import seeded_inputs

SECONDS = 0.01


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two equal products, and softmaxes around them."""
    nodes = [
        graphs.node("Softmax", "x", "s"),
        graphs.node("MatMul", "s w", "a"),
        graphs.node("Softmax", "a", "b"),
        graphs.node("MatMul", "b v", "c"),
        graphs.node("Softmax", "c", "y"),
    ]
    constants = {"w": graphs.randn(0, 8, 8), "v": graphs.randn(1, 8, 8)}
    return library(graphs.model(nodes, {"x": (8, 8)}, constants=constants), tmp_path_factory)


def library(proto, tmp_path_factory):
    made = imported(proto)
    by_function = extract(made.mod, HOST)
    compiled = compile_model(made, by_function, {}, HOST)
    path = tmp_path_factory.mktemp("library") / "model.so"
    others = [one for one in calls(made) if one[0] not in by_function]
    compiled.export(path, HOST)
    tasks = {task.key: task for task in by_function.values()}.values()
    manifest = {
        **made.interfaces[0].to_json(),
        "target": HOST.to_json(),
        "tasks": [{"name": one.name, "key": one.key.workload, "places": []} for one in tasks],
        "kernels": to_builtins(kernels(compiled)),
        "others": to_builtins(other_places(compiled, others)),
    }
    return Model(path, manifest)


def of(model, seconds=SECONDS):
    return profile(model, seeded_inputs(model.inputs, seed=0), seconds)


def test_kernels_stand_in_the_order_of_the_network_and_equal_ones_apart(model):
    found = of(model).kernels
    names = ["softmax", "matmul", "softmax", "matmul", "softmax"]
    assert [one.task["name"] for one in found] == names
    assert found[1].symbol == found[3].symbol != found[2].symbol
    assert [one.shapes[-1] for one in found] == [(8, 8)] * 5


def test_kernels_and_the_rest_are_the_run(model):
    found = of(model)
    assert found.rest + sum(one.seconds for one in found.kernels) == pytest.approx(found.seconds)
    assert found.seconds > 0
    assert all(0 <= one.seconds < 1 for one in found.kernels)


def test_a_kernel_that_is_no_task_has_an_operator_and_nodes(tmp_path_factory):
    nodes = [
        graphs.node("CumSum", "x axis", "first"),
        graphs.node("Relu", "first", "more"),
        graphs.node("CumSum", "more axis", "y"),
    ]
    proto = graphs.model(nodes, {"x": (8, 8)}, constants={"axis": np.array(0)})
    found = of(library(proto, tmp_path_factory)).kernels
    scans = [one for one in found if one.task is None]
    assert [one.op for one in scans] == ["cumsum"] * 2
    assert [[node["op"] for node in one.nodes] for one in scans] == [["CumSum"], ["CumSum"]]
    assert [one.nodes[0]["name"] for one in scans] == [nodes[0].name, nodes[2].name]


def test_inputs_that_do_not_fit_are_refused(model):
    with pytest.raises(UsageError, match="x: missing"):
        profile(model, {}, SECONDS)


def test_a_library_still_computes_the_same_after_a_profile(model):
    inputs = seeded_inputs(model.inputs, seed=0)
    before = model(**inputs)
    of(model)
    assert (model(**inputs)["y"] == before["y"]).all()
