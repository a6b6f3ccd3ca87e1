"""Which numbers of a quantised network are right: the oracle's own, in both of its ways, no others.

What a wrong library would compute is what ONNX Runtime makes of a wrong model.
"""

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.graphs import Calibration, model, node
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from ansor_deploy.ship.verify.judges import judge_outputs
from ansor_deploy.ship.verify.onnx_runtime import open_session
from ansor_deploy.ship.verify.oracle import Oracle

RNG = np.random.default_rng(0)
SHAPE, DEPTH, WIDTH = (1, 8, 12, 12), 8, 24


def randn(*shape, scale=1.0):
    return RNG.standard_normal(shape, dtype=np.float32) * np.float32(scale)


@pytest.fixture(scope="module")
def proto(tmp_path_factory):
    """Residual blocks and a classifier, of weights of 7 bits: of these no pair saturates."""
    folder, nodes, last = tmp_path_factory.mktemp("net"), [], "x"
    constants = {"m": randn(WIDTH, 40, scale=0.2)}
    for at in range(DEPTH):
        width = WIDTH if at else SHAPE[1]
        constants[f"w{at}"] = randn(WIDTH, width, 3, 3, scale=(9 * width) ** -0.5)
        constants[f"b{at}"] = randn(WIDTH)
        nodes.append(node("Conv", f"{last} w{at} b{at}", f"c{at}", pads=[1] * 4))
        nodes.append(node("Sigmoid", f"c{at}", f"s{at}"))
        nodes.append(node("Mul", f"c{at} s{at}", f"g{at}"))
        if at:
            nodes.append(node("Add", f"g{at} {last}", f"a{at}"))
        last = f"a{at}" if at else f"g{at}"
    nodes += [node("GlobalAveragePool", last, "p"), node("Flatten", "p", "f")]
    nodes += [node("MatMul", "f m", "y")]
    onnx.save(model(nodes, {"x": SHAPE}, constants=constants), folder / "float.onnx")
    given = {"quant_format": QuantFormat.QDQ, "weight_type": QuantType.QInt8, "per_channel": True}
    given["reduce_range"] = True
    quantize_static(
        folder / "float.onnx",
        folder / "q.onnx",
        Calibration({"x": randn(*SHAPE)} for _ in range(3)),
        **given,
    )
    return onnx.load(folder / "q.onnx")


def copied(proto):
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    return made


def constant(proto, name):
    return next(one for one in proto.graph.initializer if one.name == name)


def changed(proto, name, change):
    """The model with another value of a constant, of the same type."""
    made = copied(proto)
    tensor = constant(made, name)
    value = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(change(value), value.dtype), name))
    return made


def at(proto, op, output):
    """The node that makes a tensor of the float network of it, by its operator."""
    return next(n for n in proto.graph.node if n.op_type == op and output in n.output[0])


def reads(proto, change, place):
    """The model with another constant in the place of an input of one DequantizeLinear."""
    made = copied(proto)
    read = at(made, "DequantizeLinear", "g4")
    value = numpy_helper.to_array(constant(made, read.input[place]))
    other = numpy_helper.from_array(np.asarray(change(value), value.dtype), "other")
    made.graph.initializer.append(other)
    read.input[place] = "other"
    return made


def off_zero(proto):
    return reads(proto, lambda zero: zero + 3, 2)


def off_scale(proto):
    return reads(proto, lambda scale: scale * 1.1, 1)


def wrong_weight(proto):
    return changed(proto, "w4_quantized", lambda w: np.roll(w, 1, axis=0))


def wrong_bias(proto):
    return changed(proto, "b4_quantized", lambda b: np.roll(b, 1))


def cut_off(proto):
    """Steps that are cut off, not rounded: half a step less before each conversion of a layer."""
    made = copied(proto)
    for one in [n for n in made.graph.node if n.op_type == "QuantizeLinear"]:
        if one.output[0][:1] not in "ga":
            continue
        step, less = numpy_helper.to_array(constant(proto, one.input[1])), f"{one.name}_less"
        made.graph.initializer.append(numpy_helper.from_array(step * np.float32(-0.5), less))
        place = [n.name for n in made.graph.node].index(one.name)
        added = helper.make_node("Add", [one.input[0], less], [f"{less}_sum"])
        made.graph.node.insert(place, added)
        made.graph.node[place + 1].input[0] = f"{less}_sum"
    return made


def other_border(proto):
    """A border of zeros as bytes, where it is the zero point that stands for zero."""
    made = copied(proto)
    conv = at(made, "Conv", "c4")
    read = at(made, "DequantizeLinear", conv.input[0])
    scale, zero = (numpy_helper.to_array(constant(proto, name)) for name in read.input[1:])
    pads, least = np.array([0, 0, 1, 1, 0, 0, 1, 1]), (0 - zero.astype(np.float32)) * scale
    made.graph.initializer.extend(
        [numpy_helper.from_array(pads, "pads"), numpy_helper.from_array(least, "least")]
    )
    padded = helper.make_node("Pad", [conv.input[0], "pads", "least"], ["padded"])
    place = [n.name for n in made.graph.node].index(conv.name)
    made.graph.node.insert(place, padded)
    conv = made.graph.node[place + 1]
    conv.input[0] = "padded"
    kept = [one for one in conv.attribute if one.name != "pads"]
    del conv.attribute[:]
    conv.attribute.extend(kept)
    return made


MUTANTS = [off_zero, off_scale, wrong_weight, wrong_bias, cut_off, other_border]


def is_right(oracle, seed, run):
    feed = graphs.random_feeds(oracle.proto, seed=seed)
    verdicts = judge_outputs(run(feed), oracle.outputs(feed), oracle, feed, {})
    return all(one.ok for one in verdicts.values())


@pytest.mark.parametrize("seed", range(3))
def test_its_own_other_way_is_right(proto, seed):
    written = open_session(proto.SerializeToString(), 1, as_written=True)
    assert is_right(Oracle(proto, 1), seed, lambda feed: {"y": written.run(["y"], feed)[0]})


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda one: one.__name__)
def test_a_wrong_network_is_not(proto, mutate):
    wrong = open_session(mutate(proto).SerializeToString(), 1)
    for seed in range(3):
        assert not is_right(Oracle(proto, 1), seed, lambda feed: {"y": wrong.run(["y"], feed)[0]})


def test_a_step_of_the_output_is_right(proto):
    oracle = Oracle(proto, 1)
    (step,) = oracle.steps.values()
    assert step > 0
    nudge = np.where(np.arange(40) % 7 == 0, np.float32(step), np.float32(0))
    assert is_right(oracle, 0, lambda feed: {"y": oracle.outputs(feed)["y"] + nudge})
    assert not is_right(oracle, 0, lambda feed: {"y": oracle.outputs(feed)["y"] + 6 * nudge})


def test_other_networks_have_no_steps():
    assert Oracle(graphs.dense(8, 8, 4), 1).steps is None
