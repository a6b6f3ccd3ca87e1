"""A converter of an operator is one class and one entry of the table: nothing else knows of it."""

import pytest
from helpers.built import assert_like_oracle, imported
from helpers.graphs import model, node

from ansor_deploy._tvm import onnx_frontend, relax
from ansor_deploy.errors import ModelError
from ansor_deploy.model.converters import CONVERTERS


class Celu(onnx_frontend.OnnxOpConverter):
    """An operator that TVM has no converter for: max(0, x) + min(0, alpha * (exp(x/alpha) - 1))."""

    @classmethod
    def _impl_v12(cls, _bb, inputs, attr, _params):
        x, alpha = inputs[0], relax.const(attr.get("alpha", 1.0), "float32")
        zero, one = (relax.const(value, "float32") for value in (0.0, 1.0))
        below = relax.op.multiply(alpha, relax.op.subtract(relax.op.exp(x / alpha), one))
        return relax.op.add(relax.op.maximum(x, zero), relax.op.minimum(below, zero))


def test_an_entry_of_the_table_makes_an_operator_supported(monkeypatch):
    proto = model([node("Celu", "x", "y", alpha=0.5)], {"x": (4, 8)})
    with pytest.raises(ModelError, match="Celu"):
        imported(proto)
    monkeypatch.setitem(CONVERTERS, "Celu", Celu)
    assert_like_oracle(proto)
