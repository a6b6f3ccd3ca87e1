"""A library that is replaced while a process has it: what is loaded afterwards is the new one."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported

from ansor_deploy.runtime.model import Model

X = graphs.randn(0, 2, 8)


def made(operator, path):
    """A library of its own code and weights, and what it is to give."""
    weights = graphs.randn(len(operator), 8, 8)
    nodes = [graphs.node("MatMul", "x w", "h"), graphs.node(operator, "h", "y")]
    proto = graphs.model(nodes, {"x": (2, 8)}, constants={"w": weights})
    compiled(proto).export(path, HOST)
    manifest = {**imported(proto).interfaces[0].to_json(), "target": HOST.to_json()}
    return manifest, graphs.run(proto, {"x": X})[0]


def test_the_new_one_has_its_own_code_and_weights(tmp_path):
    place, models = tmp_path / "net.so", []
    for operator in ("Relu", "Neg", "Abs"):
        manifest, want = made(operator, tmp_path / "new.so")
        (tmp_path / "new.so").replace(place)
        models.append((Model(place, manifest), want))
        models.append((Model(place, manifest), want))
    for model, want in models:
        assert model(x=X)["y"] == pytest.approx(want, rel=1e-5, abs=1e-5)
    assert not np.allclose(models[0][1], models[-1][1])
