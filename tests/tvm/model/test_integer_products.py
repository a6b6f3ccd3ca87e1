"""Products of two matrices of bytes that are known in a run only: every sum exact."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.graphs import node
from onnx import helper, numpy_helper

from ansor_deploy.codegen.kernels.lowering import compiled
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

RNG = np.random.default_rng(0)
VNNI = replace(
    load_target("intel-cpu-avx512", [shipped("targets")]),
    cpu="x86-64-v4",
    features=("+avx512vnni",),
    cores=1,
)
SHAPES = {
    "of heads": ((2, 3, 20, 16), (2, 3, 16, 40)),
    "of few and odd steps": ((12, 5), (5, 24)),
    "of odd columns": ((3, 17, 64), (3, 64, 197)),
    "of odd steps": ((2, 64, 197), (2, 197, 64)),
    "of one row": ((4, 1, 32), (4, 32, 16)),
    "of other matrices for each": ((2, 9, 8), (1, 8, 16)),
}
KINDS = {"bytes": ("uint8", "uint8"), "of two kinds": ("uint8", "int8"), "signed": ("int8", "int8")}


def product(left, right, kinds, zeros):
    names = dict(zip("ab", zip((left, right), kinds, strict=True), strict=True))
    types = {
        name: helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for name, (_, kind) in names.items()
    }
    constants = [np.array(z, kind) for z, kind in zip(zeros, kinds, strict=True)]
    graph = helper.make_graph(
        [node("MatMulInteger", "a b az bz", "o")],
        "product",
        [helper.make_tensor_value_info(n, types[n], shape) for n, (shape, _) in names.items()],
        [helper.make_tensor_value_info("o", 6, None)],
        [
            numpy_helper.from_array(value, name)
            for value, name in zip(constants, ("az", "bz"), strict=True)
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def drawn(shape, kind):
    """Bytes, half of them the least or the greatest."""
    ends = np.iinfo(kind)
    middle = RNG.integers(ends.min, ends.max + 1, shape)
    return np.where(
        RNG.random(shape) < 0.5, RNG.choice([ends.min, ends.max], shape), middle
    ).astype(kind)


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    ("kinds", "zeros"),
    [("bytes", (0, 128)), ("bytes", (131, 7)), ("of two kinds", (255, -3)), ("signed", (-128, 0))],
)
def test_every_sum_is_exact(shapes, kinds, zeros):
    proto = product(*shapes, KINDS[kinds], zeros)
    a, b = (drawn(shape, kind) for shape, kind in zip(shapes, KINDS[kinds], strict=True))
    (found,) = built.run(proto, {"a": a, "b": b})
    np.testing.assert_array_equal(found, (a.astype(int) - zeros[0]) @ (b.astype(int) - zeros[1]))


@pytest.mark.parametrize("name", ["of heads", "of odd steps"])
def test_four_steps_are_summed_up_at_once(name):
    proto = product(*SHAPES[name], KINDS["bytes"], (3, 5))
    if not lacks(VNNI.triple, VNNI.cpu, VNNI.features):
        a, b = (drawn(shape, "uint8") for shape in SHAPES[name])
        (found,) = built.run(proto, {"a": a, "b": b}, VNNI)
        np.testing.assert_array_equal(found, (a.astype(int) - 3) @ (b.astype(int) - 5))
    tasks = extract(built.imported(proto, VNNI).mod, VNNI).values()
    task = max(tasks, key=lambda one: one.workload.flops)
    func = default_schedule(task.mod, VNNI).mod["main"]
    assert "vpdpbusd" in compiled({"main": func}, VNNI).inspect_source("asm")
