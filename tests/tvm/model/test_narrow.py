"""Weights of 16 bits are stored as such, and nothing that is computed of them differs by a bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from helpers.built import HOST, assert_like_oracle, compiled, imported
from helpers.graphs import model, node, randn
from helpers.together import Together
from onnx import TensorProto, numpy_helper

from ansor_deploy._tvm import collect, tvm
from ansor_deploy.model.relax import narrow
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.canonical_text import check_text
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

KINDS = {
    "float16": (TensorProto.FLOAT16, np.float16),
    "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
}


def convolutions():
    """By tiles, in strips, by Winograd, of each channel alone, and with the weight of another."""
    nodes = [
        node("Conv", "x stem s", "c0", pads=[1] * 4, strides=[2, 2]),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w", "c1", pads=[1] * 4),
        node("Conv", "c1 d", "c2", pads=[1] * 4, group=128),
        node("Conv", "c2 p", "c3"),
        node("Add", "c1 c3", "a"),
        node("Conv", "a p", "c4", strides=[2, 2]),
        node("Conv", "c4 w", "y", pads=[1] * 4, strides=[2, 2]),
    ]
    shapes = {"stem": (128, 3, 4, 4), "s": (128,), "w": (128, 128, 3, 3)}
    return nodes, [1, 3, 40, 40], {**shapes, "d": (128, 1, 3, 3), "p": (128, 128, 1, 1)}


def layers(rows):
    """Products with weights as they are, turned, and used twice; a bias that is long."""
    nodes = [
        node("Gemm", "x w b", "g", transB=1),
        node("MatMul", "g v", "m"),
        node("Add", "m b", "a"),
        node("Gemm", "a v b", "y"),
    ]
    return nodes, [rows, 320], {"w": (1100, 320), "b": (1100,), "v": (1100, 1100)}


def embedding():
    nodes = [
        node("Cast", "x", "i", to=TensorProto.INT64),
        node("Gather", "table i", "e"),
        node("Add", "e place", "p"),
        node("MatMul", "p w", "y"),
    ]
    return nodes, [48], {"table": (500, 64), "place": (48, 64), "w": (64, 96)}


NETS = {
    "convolutions": convolutions,
    "one row": lambda: layers(1),
    "rows": lambda: layers(150),
    "embedding": embedding,
}


def built(net, kind):
    nodes, shape, weights = NETS[net]()
    dtype, array = KINDS[kind]
    values = {
        name: (randn(at, *size) * 0.1).astype(array)
        for at, (name, size) in enumerate(weights.items())
    }
    return model(nodes, {"x": shape}, constants=values, dtype=dtype)


MODELS = list(product(NETS, KINDS))


def together():
    """All models as they are imported now."""
    feeds = {}
    for net, kind in MODELS:
        shape, array = NETS[net]()[1], KINDS[kind][1]
        x = np.arange(48) if net == "embedding" else randn(9, *shape)
        feeds[net, kind] = {"x": x.astype(array).reshape(shape)}
    return Together({one: built(*one) for one in MODELS}, feeds)


@pytest.fixture(scope="module")
def narrowed():
    return together()


@pytest.fixture(scope="module")
def wide():
    """The outputs of the models with weights of float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "_convertible", lambda target: set())
        models = together()
        return {one: models.outputs(one) for one in MODELS}


@pytest.mark.parametrize(("net", "kind"), MODELS)
def test_results_are_those_of_weights_of_float32(net, kind, narrowed, wide):
    (have,), (want,) = narrowed.outputs((net, kind)), wide[net, kind]
    assert have.dtype == KINDS[kind][1]
    assert np.isfinite(want.astype(np.float32)).all()
    np.testing.assert_array_equal(have.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("net", NETS)
def test_a_net_of_such_weights_is_right(net, narrowed):
    narrowed.assert_like_oracle((net, "float16"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("net", ["one row", "rows", "embedding"])
def test_weights_take_no_more_than_in_the_model(net, kind):
    proto = built(net, kind)
    assert len(compiled(proto).weights.block) <= 1.05 * proto.ByteSize()


def test_what_the_model_casts_to_float32_is_stored_as_before():
    nodes = [node("Cast", "w", "v", to=TensorProto.FLOAT), node("MatMul", "x v", "y")]
    proto = model(nodes, {"x": [4, 64]}, constants={"w": randn(0, 64, 96).astype(np.float16)})
    assert types(proto) == {"float16"}
    assert_like_oracle(proto)


def test_what_halves_would_round_stays_float32():
    nodes = [node("MatMul", "x w", "a"), node("Cast", "a", "f", to=1), node("MatMul", "f v", "g")]
    nodes.append(node("Cast", "g", "y", to=TensorProto.FLOAT16))
    weights = {"w": randn(0, 64, 64).astype(np.float16), "v": randn(1, 64, 64)}
    proto = model(nodes, {"x": [4, 64]}, constants=weights, dtype=TensorProto.FLOAT16)
    assert types(proto) == {"float16", "float32"}


def test_a_model_of_float32_has_no_other_weights():
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    proto = model([node("MatMul", "x w", "y")], {"x": [4, 64]})
    proto.graph.initializer.append(weight)
    assert types(proto) == {"float32"}


def test_a_processor_that_cannot_convert_has_weights_of_float32():
    x86 = load_target("intel-cpu-avx2", [shipped("targets")])
    old = replace(x86, cpu="x86-64-v2", vector_bytes=16)
    assert types(built("one row", "float16"), x86) == {"float16"}
    assert types(built("one row", "float16"), old) == {"float32"}
    assert types(built("one row", "bfloat16"), old) == {"bfloat16"}


def types(proto, target=HOST):
    """Of the constants that kernels take."""
    constants = collect(imported(proto, target).mod["main"], tvm.ir.GenericConst)
    return {str(one.ty.dtype) for one in constants if len(one.ty.shape)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("net", NETS)
def test_tasks_can_be_measured_elsewhere(net, kind):
    """Other processes parse the text of a task."""
    for task in extract(imported(built(net, kind)).mod, HOST).values():
        check_text(task.workload.text, task.mod)
