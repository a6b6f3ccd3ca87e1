"""Where a quantised network may make other bytes on another processor: by the model's nodes."""

import onnx
import pytest
from helpers import built, graphs
from helpers.graphs import model, node, randn
from helpers.quantised_nets import network

from ansor_deploy.model.prepare import prepare
from ansor_deploy.ship.islands import islands
from benchmarks.networks.quantised import quantised


def operators(proto, folder):
    """What is computed in each such place; None of a network that is not quantised."""
    onnx.save(proto, folder / "model.onnx")
    found = islands(prepare(folder / "model.onnx", built.HOST), built.HOST)
    return None if found is None else [{one.op for one in place.nodes} for place in found]


@pytest.mark.parametrize("name", ["residual:qdq", "pools:qoperator", "gates:qdq", "layers:dynamic"])
def test_integers_are_the_same_everywhere(name, tmp_path):
    assert operators(network(name), tmp_path) == []


def test_a_mean_of_floats_is_named(tmp_path):
    (found,) = operators(network("residual:dynamic"), tmp_path)
    assert "GlobalAveragePool" in found


def test_a_softmax_between_products_is_named(tmp_path):
    nodes = [node("MatMul", "x v", "a"), node("Softmax", "a", "b"), node("MatMul", "b w", "y")]
    constants = {"v": randn(0, 32, 24), "w": randn(1, 24, 32)}
    proto = quantised(model(nodes, {"x": (16, 32)}, constants=constants), "qdq")
    (found,) = operators(proto, tmp_path)
    assert "Softmax" in found


def test_other_networks_say_nothing(tmp_path):
    assert operators(graphs.dense(8, 8, 4), tmp_path) is None
