"""The table of operators is what can be imported: no more, no less, and what fails is named."""

import numpy as np
import onnx
import pytest
from helpers.built import assert_like_oracle, compiled, imported
from helpers.graphs import model, node

from ansor_deploy._tvm import onnx_frontend, relax
from ansor_deploy.errors import ModelError
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS

# TVM keeps these by their bare names; they are of other domains, or refused.
NOT_STANDARD = {
    "AllClassNMS", "BiasGelu", "EmbedLayerNormalization", "FastGelu", "MatMulInteger16",
    "SkipLayerNormalization",
}  # fmt: skip

# ONNX Runtime's optimiser writes these under ONNX's own domain, whatever the opset; and a Round is
# what QLinearConv, which is of opset 10, is rewritten to.
OF_ANY_OPSET = {"LayerNormalization", "SimplifiedLayerNormalization", "Round"}


def test_every_operator_without_a_function_of_ours_has_a_converter_of_tvms():
    theirs = onnx_frontend._get_convert_map().keys()
    standard = {name for domain, name in OPERATORS if not domain}
    assert theirs - NOT_STANDARD <= standard
    left_to_tvm = {o.name for o in OPERATORS.values() if not (o.convert or o.expand or o.rewrite)}
    assert left_to_tvm - theirs == {"If"}


def test_no_operator_is_said_to_be_older_than_it_is():
    first = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        first[key] = min(schema.since_version, first.get(key, schema.since_version))
    listed = {(d, n): o.since for (d, n), o in OPERATORS.items() if not d and n not in OF_ANY_OPSET}
    assert {key: since for key, since in listed.items() if since < first[key]} == {}


def test_an_entry_with_a_function_makes_an_operator_supported(monkeypatch):
    proto = model([node("Celu", "x", "y", alpha=0.5)], {"x": (4, 8)})
    monkeypatch.delitem(OPERATORS, ("", "Celu"), raising=False)
    with pytest.raises(ModelError, match="Celu"):
        imported(proto)

    def celu(call):
        """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
        alpha = relax.const(call.attribute("alpha", 1.0), "float32")
        zero, one = (relax.const(value, "float32") for value in (0.0, 1.0))
        below = relax.op.multiply(alpha, relax.op.exp(call.inputs[0] / alpha) - one)
        return relax.op.maximum(call.inputs[0], zero) + relax.op.minimum(below, zero)

    monkeypatch.setitem(OPERATORS, ("", "Celu"), Operator("Celu", since=12, convert=celu))
    assert_like_oracle(proto)


def test_a_converter_that_fails_names_its_node(monkeypatch):
    proto = model([node("Relu", "x", "middle"), node("Neg", "middle", "y")], {"x": (4, 8)})
    proto.graph.node[0].name = ""

    def relu(call):
        message = "Traceback\n  no such axis\n"
        raise IndexError(message)

    monkeypatch.setitem(OPERATORS, ("", "Relu"), Operator("Relu", convert=relu))

    with pytest.raises(ModelError, match=r"node 'middle': this use of Relu .*: no such axis"):
        imported(proto)


@pytest.mark.parametrize(("exponent", "called"), [(2.0, False), (3.0, False), (2.5, True)])
def test_squares_and_cubes_are_products(exponent, called):
    value = np.array(exponent, np.float32)
    nodes = [node("Abs", "x", "a"), node("Pow", "a e", "y")]
    proto = model(nodes, {"x": (4, 8)}, constants={"e": value})
    assert ("T.pow(" in imported(proto).mod.script()) == called
    assert_like_oracle(proto)


def test_what_calls_beyond_the_runtime_is_refused(monkeypatch):
    def relu(call):
        return relax.op.sort(call.inputs[0])

    monkeypatch.setitem(OPERATORS, ("", "Relu"), Operator("Relu", convert=relu))

    with pytest.raises(ModelError, match=r"sort calls tvm\.contrib\.sort\.sort, which the runtime"):
        compiled(model([node("Relu", "x", "y")], {"x": (4, 8)}))
