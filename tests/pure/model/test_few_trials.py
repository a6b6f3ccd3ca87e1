"""Sizes are found by few trials, and a refused model is read once."""

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node, randn
from onnx import TensorProto, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model import misfit, prepare, shapes
from ansor_deploy.model.assumed import assumed
from ansor_deploy.model.batches import Span
from ansor_deploy.model.counted.ranges import asked_of
from ansor_deploy.model.graph import fold
from ansor_deploy.model.graph.graph import Graph


@pytest.fixture
def tried(monkeypatch):
    """The sizes of each trial."""
    seen, once = [], misfit._tried
    monkeypatch.setattr(
        misfit, "_tried", lambda lean, one, *room: seen.append(one) or once(lean, one, *room)
    )
    return seen


def of_positions(rows):
    """A text that reads one row of a table for each token, from the third on."""
    nodes = [node("Shape", "ids", "n", start=1, end=2), node("Squeeze", "n", "count"),
             node("Add", "count two", "end"), node("Range", "two end one", "places"),
             node("Gather", "positions places", "p"), node("Gather", "words ids", "e"),
             node("Add", "e p", "y")]  # fmt: skip
    constants = {"positions": randn(0, rows, 8), "words": randn(1, 50, 8)}
    constants |= {"two": np.array(2), "one": np.array(1)}
    proto = model(nodes, {"ids": ("batch", "seq")}, constants=constants)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return proto


def test_the_longest_text_is_sought_below_a_length_that_did_not_fit(tried):
    assert assumed(misfit.Trials(of_positions(514)), {}) == {"ids": (1, Span(1, 512))}
    assert [one["ids"][1] for one in tried] == [128, 1028, 514, 512, 513, 1, 511]


def test_a_short_sound_is_tried_beside_a_short_text():
    """Neither fits in the usual order: a frame or a token too many has no position."""
    proto = of_positions(50)
    nodes = [node("Conv", "sound w", "c", strides=[8]), node("Shape", "c", "frames", start=2),
             node("Squeeze", "frames", "m"), node("Range", "zero m one", "numbers"),
             node("Gather", "times numbers", "t"), node("ReduceSum", "t", "s", keepdims=0),
             node("Add", "y s", "z")]  # fmt: skip
    constants = {"w": randn(2, 1, 1, 8), "times": randn(3, 100, 1), "zero": np.array(0)}
    beside = model(nodes, {"sound": ("batch", 1, "samples")}, ("z",), constants)
    proto.graph.node.extend(beside.graph.node)
    proto.graph.initializer.extend(beside.graph.initializer)
    proto.graph.input.append(beside.graph.input[0])
    proto.graph.output[0].CopyFrom(beside.graph.output[0])
    found = assumed(misfit.Trials(proto), {})
    assert found == {"ids": (1, Span(1, 48)), "sound": (1, 1, Span(8, 807))}


def test_lengths_between_two_that_fit_are_not_tried(tried):
    proto = model(
        [node("Conv", "x w", "y", strides=[2])],
        {"x": (1, 1, "n")},
        constants={"w": randn(0, 1, 1, 3)},
    )
    assert assumed(misfit.Trials(proto), {})["x"][2].most == 48000
    assert (1, 1, 32000) not in [one["x"] for one in tried]


def test_which_lengths_are_free_is_asked_once(tried):
    nodes = [node("MatMul", "a b", "y")]
    trials = misfit.Trials(model(nodes, {"a": (1, "n", 8), "b": (1, 8, "m")}))
    spans = {"a": (1, Span(1, 9), 8), "b": (1, 8, Span(1, 9))}
    assert [len(asked_of(trials, spans)) for _ in range(2)] == [2, 2]
    assert len(tried) == 2


def test_a_graph_of_which_nothing_more_is_known_is_not_folded_again(monkeypatch, tried):
    rounds, folded = [], fold._folded
    monkeypatch.setattr(fold, "_folded", lambda graph: rounds.append(1) or folded(graph))
    trials = misfit.Trials(of_positions(64))
    assert trials._lean
    rounds.clear()
    trials.misfit({"ids": (1, 8)})
    assert len(rounds) == 1


def of_layers(count):
    """Layers that each compute the same sizes of their data."""
    nodes = []
    for at in range(count):
        nodes += [node("Relu", f"x{at}", f"r{at}"), node("Shape", f"r{at}", f"s{at}"),
                  node("Gather", f"s{at} second", f"n{at}"), node("Mul", f"n{at} two", f"m{at}"),
                  node("Concat", f"m{at} rest", f"to{at}", axis=0),
                  node("Reshape", f"r{at} to{at}", f"v{at}"),
                  node("Reshape", f"v{at} s{at}", f"x{at + 1}")]  # fmt: skip
    constants = {"second": np.array([1]), "two": np.array([2]), "rest": np.array([-1])}
    return model(nodes, {"x0": ("batch", "seq", 4)}, (f"x{count}",), constants)


def test_what_layers_compute_alike_is_computed_once(monkeypatch):
    made, evaluate = [], fold._evaluate
    monkeypatch.setattr(
        fold, "_evaluate", lambda graph, one: made.append(one.op_type) or evaluate(graph, one)
    )
    trials = misfit.Trials(of_layers(6))
    assert trials._lean
    made.clear()
    assert not trials.misfit({"x0": (1, 8, 4)})
    assert made == ["Gather", "Mul", "Concat"]
    assert not trials.misfit({"x0": (2, 8, 4)})  # only the shape itself differs
    assert made == ["Gather", "Mul", "Concat", "Gather"]


@pytest.mark.parametrize(("rows", "times"), [(2, [False, True]), (5, [False, True, False])])
def test_the_last_inference_of_a_trial_is_the_strict_one(monkeypatch, rows, times):
    proto = of_layers(1)
    proto.graph.node.append(node("MatMul", "v0 w", "y"))
    proto.graph.output[0].name = "y"
    proto.graph.initializer.append(numpy_helper.from_array(randn(0, rows, 3), "w"))
    trials = misfit.Trials(proto)
    assert trials._lean
    seen, infer = [], Graph.infer
    monkeypatch.setattr(
        Graph,
        "infer",
        lambda graph, strict=False: seen.append(strict) or infer(graph, strict=strict),
    )
    assert bool(trials.misfit({"x0": (1, 8, 4)})) == (rows != 2)
    assert seen == times


def test_a_refused_model_is_read_once(monkeypatch, tmp_path):
    reads, load = [], prepare.load
    for module in (prepare, shapes):
        monkeypatch.setattr(module, "load", lambda path: reads.append(path) or load(path))
    inputs = {"x": (1, 2, "n"), "s": (3,)}
    onnx.save(model([node("Resize", "x - s", "y", mode="linear")], inputs), tmp_path / "net.onnx")
    said = []
    with pytest.raises(ModelError):
        prepare.prepare(tmp_path / "net.onnx", None, stage=lambda *one: said.append(one))
    assert [name for name, _ in said] == ["read", "sizes", "sizes"]
    assert len(reads) == 1
