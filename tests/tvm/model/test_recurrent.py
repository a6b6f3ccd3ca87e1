"""Recurrent layers compute what ONNX says, in the node tests of `onnx` and beside ONNX Runtime."""

import numpy as np
import pytest
from helpers.built import HOST, assert_like_oracle, imported, run
from helpers.graphs import model, node, randn, random_feeds
from helpers.ranges import opened
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.errors import ModelError
from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.space.canonical_text import check_text
from benchmarks.fuzz.conformance_cases import attempt

CASES = (
    "test_lstm_with_peepholes",
    "test_lstm_batchwise",
    "test_lstm_bidirectional",
    "test_gru_defaults",
    "test_gru_seq_length",
    "test_gru_bidirectional",
    "test_rnn_seq_length",
    "test_simple_rnn_reverse",
)


@pytest.mark.parametrize("name", CASES)
def test_a_node_test_of_onnx_is_right(name):
    assert attempt({"case": name}) == {"outcome": "right", "detail": ""}


def layer(op, steps, batch, size, hidden, gates, *, longest=None, **attributes):
    """A layer with weights and biases, and lengths and states where `inputs` names them.

    longest: of the sequences, each of which is a step shorter than the one before; all steps.
    """
    longest = longest or steps
    two = 2 if attributes.get("direction") == "bidirectional" else 1
    scale = np.float32(hidden**-0.5)
    constants = {
        "w": randn(1, two, gates * hidden, size) * scale,
        "r": randn(2, two, gates * hidden, hidden) * scale,
        "b": randn(3, two, 2 * gates * hidden),
        "lens": np.arange(longest, longest - batch, -1, dtype=np.int32),
        "h": randn(4, two, batch, hidden),
        "c": randn(5, two, batch, hidden),
        "p": randn(6, two, 3 * hidden),
    }
    inputs = {"LSTM": "x w r b lens h c p", "GRU": "x w r b lens h", "RNN": "x w r b lens h"}[op]
    made = "y y_h y_c" if op == "LSTM" else "y y_h"
    used = {name: constants[name] for name in inputs.split()[1:]}
    nodes = [node(op, inputs, made, hidden_size=hidden, **attributes)]
    return model(nodes, {"x": (steps, batch, size)}, made.split(), used)


def test_an_lstm_with_all_it_can_have():
    """Of 37 units, which leave the last panel half empty."""
    activations = ["HardSigmoid", "Softsign", "Elu", "Sigmoid", "ScaledTanh", "Relu"]
    numbers = {"activation_alpha": [0.3, 0.7, 1.1], "activation_beta": [0.4, 0.9]}
    options = {"direction": "bidirectional", "activations": activations, **numbers}
    assert_like_oracle(layer("LSTM", 6, 3, 5, 37, 4, clip=1.5, **options))


def test_an_lstm_whose_units_are_worth_threads():
    assert_like_oracle(layer("LSTM", 4, 2, 24, 272, 4, input_forget=1))


@pytest.mark.parametrize("linear_before_reset", [0, 1])
def test_a_gru(linear_before_reset):
    options = {"direction": "reverse", "clip": 0.8, "linear_before_reset": linear_before_reset}
    assert_like_oracle(layer("GRU", 5, 2, 7, 40, 3, **options))


def test_no_step_beyond_the_longest_sequence_computes():
    """What lies there is zero, and no product stands outside of what asks for the length."""
    proto = layer("GRU", 6, 3, 7, 40, 3, direction="bidirectional", longest=3)
    assert_like_oracle(proto)
    tasks = extract(imported(proto).mod, HOST)
    (steps,) = (task for task in tasks.values() if task.workload.op == "gru")
    (asked,) = collect(steps.mod["main"], tirx.IfThenElse)
    whole, then = (_products(body) for body in (steps.mod["main"], asked.then_case))
    assert whole == then > 0


def _products(body):
    return sum(block.init is not None for block in collect(body, tvm.s_tir.SBlock))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_an_lstm_of_bytes(kind):
    """Of 37 units, with what the quantiser of ONNX Runtime makes of its weights."""
    proto = of_bytes(layer("LSTM", 6, 3, 5, 37, 4, direction="bidirectional"), kind)
    feeds = random_feeds(proto)
    for have, want in zip(run(proto, feeds), Oracle(proto).outputs(feeds).values(), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_an_lstm_of_bytes_ends_with_the_last_step_that_counts():
    proto = of_bytes(layer("LSTM", 6, 1, 5, 8, 4, direction="bidirectional"), "int8")
    x = proto.graph.input[0]
    assert x.name == "x"
    x.type.tensor_type.shape.dim[0].dim_param = "time"
    graph = opened(proto, {"x": (Span(1, 6), 1, 5)})
    (lstm,) = (one for one in graph.nodes if one.op_type == "LSTM")
    assert lstm.domain
    assert lstm.input[4]
    assert [(one.output, one.axis) for one in graph.lengths] == [("y", 0)]


def of_bytes(proto, kind):
    """A layer as DynamicQuantizeLSTM: signed weights by column, or others of one zero point.

    Less that, the latter are no bytes. The former have seven bits: without VNNI ONNX Runtime's sums
    of pairs saturate.
    """
    (lstm,) = proto.graph.node
    kept = [one for one in proto.graph.initializer if one.name not in ("w", "r", "lens")]
    made = {one.name: numpy_helper.to_array(one) for one in proto.graph.initializer}
    zero, ends, most = (0, (-63, 63), 63) if kind == "int8" else (100, (0, 255), 150)
    for name in ("w", "r"):
        turned = made[name].swapaxes(1, 2)
        scale = np.abs(turned).max(axis=1 if kind == "int8" else (1, 2), keepdims=True) / most
        whole = np.clip(np.rint(turned / scale) + zero, *ends).astype(kind)
        scale = scale.reshape(*scale.shape[::2]) if kind == "int8" else scale.reshape(-1)
        parts = {name: whole, f"{name}s": scale, f"{name}z": np.full(scale.shape, zero, kind)}
        kept += [numpy_helper.from_array(value, key) for key, value in parts.items()]
        lstm.input.extend((f"{name}s", f"{name}z"))
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    lstm.input[4] = ""
    lstm.op_type, lstm.domain = "DynamicQuantizeLSTM", "com.microsoft"
    proto.opset_import.append(helper.make_opsetid(lstm.domain, 1))
    return proto


def test_the_products_of_all_inputs_and_the_recurrence_are_tasks():
    proto = layer("RNN", 5, 2, 7, 40, 1)
    tasks = extract(imported(proto).mod, HOST)
    (inputs,) = (task for task in tasks.values() if "matmul" in task.name)
    assert inputs.flops >= 2 * 5 * 2 * 7 * 40
    (steps,) = (task for task in tasks.values() if task.workload.op == "rnn")
    assert steps.flops >= 2 * 5 * 2 * 40 * 40
    check_text(steps.workload.text, steps.mod)


def test_two_directions_are_one_task():
    tasks = extract(imported(layer("GRU", 5, 2, 7, 40, 3, direction="bidirectional")).mod, HOST)
    both = [task for task in tasks.values() if task.workload.op == "gru"]
    assert [task.weight for task in both] == [1]


def test_numbers_far_from_zero_stay_finite():
    """Gates saturate, where an exponential that overflows would make them no numbers."""
    ones = {"w": np.ones((1, 12, 1), np.float32), "r": np.zeros((1, 12, 3), np.float32)}
    proto = model([node("LSTM", "x w r", "y", hidden_size=3)], {"x": (4, 1, 1)}, ("y",), ones)
    (made,) = run(proto, {"x": np.array([1e4, -1e4, 3e38, -3e38], np.float32).reshape(4, 1, 1)})
    assert np.isfinite(made).all()


def test_float64_is_refused_by_name():
    nodes = [node("GRU", "x w r", "y", hidden_size=2)]
    shapes = {"x": (3, 1, 2), "w": (1, 6, 2), "r": (1, 6, 2)}
    with pytest.raises(ModelError, match=r"GRU  at node y .*: not supported in float64"):
        canonicalize(model(nodes, shapes, dtype=TensorProto.DOUBLE))
