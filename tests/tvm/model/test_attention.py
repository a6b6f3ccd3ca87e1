"""Attention is one task where its scores outgrow a cache, and computes what its parts compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm
from helpers import graphs
from helpers.built import HOST, compiled, count_ops, imported, main_of
from helpers.graphs import model, node

from ansor_deploy.model.relax.extract import extract
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.space.attention import attention_pays
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.rule import shipped_rules

# A few scores exceed its first cache, and those of some rows the second one.
SMALL = replace(HOST, cores=1, l1_bytes=1 << 10, l2_bytes=1 << 14)
CAUSAL = np.tri(64, 40, -1, dtype=np.bool_)  # the first row sees nothing
BETWEEN = {
    "nothing": [node("Softmax", "s", "p", axis=-1)],
    "scale and mask": [
        node("Mul", "s scale", "t"),
        node("Add", "t bias", "u"),
        node("Softmax", "u", "p", axis=-1),
    ],
    "causal": [node("Where", "seen s least", "t"), node("Softmax", "t", "p", axis=-1)],
    "rows of nothing": [
        node("Where", "seen s least", "t"),
        node("Softmax", "t", "w", axis=-1),
        node("IsNaN", "w", "n"),
        node("Where", "n none w", "p"),
    ],
}
CONSTANTS = {
    "scale": np.float32(0.25),
    "bias": graphs.randn(0, 3, 1, 40),
    "seen": CAUSAL,
    "least": np.float32(-np.inf),
    "none": np.float32(0),
}


def attention(between, rows=64, keys=40, outputs=("y",)):
    nodes = [node("MatMul", "q k", "s"), *between, node("MatMul", "p v", "y")]
    used = {name for one in nodes for name in one.input}
    shapes = {"q": [1, 3, rows, 8], "k": [1, 3, 8, keys], "v": [1, 3, keys, 20]}
    constants = {name: value for name, value in CONSTANTS.items() if name in used}
    return model(nodes, shapes, outputs, constants=constants)


def assert_same(proto, target):
    feeds = graphs.random_feeds(proto)
    main = main_of(compiled(proto, target))
    found = main(*(tvm.runtime.tensor(value) for value in feeds.values()))
    assert compare(found.numpy(), *graphs.run(proto, feeds))[0]


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_scores_masks_softmax_and_values_are_one_task(between):
    proto = attention(between)
    assert len(count_ops(proto, SMALL)) == 1
    assert_same(proto, SMALL)


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_the_task_is_computed_by_blocks_of_rows(between):
    (task,) = extract(imported(attention(between), SMALL).mod, SMALL).values()
    derivation = derive(task.mod, SMALL, shipped_rules("llvm"))
    assert not derivation.faults
    (sketch,) = derivation.sketches
    assert [rule for _, rule in sketch.steps if rule != "always-inline"] == ["attention"]
    assert [one.option for one in sketch.guesses if one.question.about == "rows"] == [32]


@pytest.mark.parametrize(("rows", "keys"), [(17, 49), (1, 300)])
def test_any_number_of_tokens(rows, keys):
    proto = attention(BETWEEN["nothing"], rows, keys)
    assert len(count_ops(proto, SMALL)) == 1
    assert_same(proto, SMALL)


def test_functions_of_the_result_are_its_epilogue():
    proto = attention(BETWEEN["nothing"])
    last = proto.graph.node[-1]
    last.name = last.output[0] = "z"
    proto.graph.node.extend([node("Sigmoid", "z", "g"), node("Neg", "g", "y")])
    assert len(count_ops(proto, SMALL)) == 1
    assert_same(proto, SMALL)


def test_what_else_reads_scores_or_weights_keeps_them_apart():
    for other in ("s", "p"):
        assert len(count_ops(attention(BETWEEN["nothing"], outputs=("y", other)), SMALL)) > 1


def test_a_softmax_over_queries_is_none_of_rows():
    proto = attention([node("Softmax", "s", "p", axis=-2)])
    assert len(count_ops(proto, SMALL)) > 1


def test_few_scores_are_kernels_for_all_heads():
    large = replace(HOST, l1_bytes=1 << 20)
    assert len(count_ops(attention(BETWEEN["nothing"]), large)) == 3


def test_blocks_of_rows_keep_all_cores_busy():
    one, two = (replace(HOST, cores=cores) for cores in (1, 2))
    assert attention_pays([1, 3, 197, 197], one)
    assert not attention_pays([1, 3, 197, 197], two)
    assert attention_pays([1, 3, 1500, 1500], two)
    assert not attention_pays([1, 3, 1009, 1009], one)
