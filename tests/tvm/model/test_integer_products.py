"""Products of two matrices of bytes that are known in a run only: every sum exact."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.graphs import node, typed
from helpers.together import Together
from onnx import helper

from ansor_deploy._tvm import shape_of, tirx
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
AVX2 = replace(load_target("intel-cpu-avx2", [shipped("targets")]), cpu="x86-64-v3", cores=1)
INSTRUCTIONS = {"vpdpbusd": VNNI, "vpmaddwd": AVX2}
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
    given = {"a": (kinds[0], left), "b": (kinds[1], right)}
    az, bz = (np.array(zero, kind) for zero, kind in zip(zeros, kinds, strict=True))
    made = node("MatMulInteger", "a b az bz", "o")
    return typed([made], given, {"o": "int32"}, {"az": az, "bz": bz})


def drawn(shape, kind):
    """Bytes, half of them the least or the greatest."""
    ends = np.iinfo(kind)
    middle = RNG.integers(ends.min, ends.max + 1, shape)
    return np.where(
        RNG.random(shape) < 0.5, RNG.choice([ends.min, ends.max], shape), middle
    ).astype(kind)


DRAWN = [
    *(("bytes", (0, 128)), ("of two kinds", (255, -3)), ("bytes", (131, 7)), ("signed", (-128, 0)))
]


# Each shape, for two of the kinds in turns.
PRODUCTS = [
    (name, *DRAWN[(2 * turn + turn // 2 + more) % 4])
    for turn, name in enumerate(SHAPES)
    for more in (0, 1)
]


@pytest.fixture(scope="module")
def products():
    models, feeds = {}, {}
    for name, kinds, zeros in PRODUCTS:
        models[name, kinds, zeros] = product(*SHAPES[name], KINDS[kinds], zeros)
        pairs = zip("ab", SHAPES[name], KINDS[kinds], strict=True)
        feeds[name, kinds, zeros] = {each: drawn(shape, kind) for each, shape, kind in pairs}
    return Together(models, feeds)


@pytest.mark.parametrize("made", PRODUCTS, ids=str)
def test_every_sum_is_exact(made, products):
    pairs = zip(products.feeds[made].values(), made[2], strict=True)
    a, b = (one.astype(int) - zero for one, zero in pairs)
    np.testing.assert_array_equal(products.outputs(made)[0], a @ b)


@pytest.mark.parametrize(("instruction", "target"), INSTRUCTIONS.items(), ids=INSTRUCTIONS)
@pytest.mark.parametrize("name", ["of heads", "of odd steps"])
def test_some_steps_are_summed_up_at_once(name, instruction, target):
    proto = product(*SHAPES[name], KINDS["bytes"], (3, 5))
    if not lacks(target.triple, target.cpu, target.features):
        a, b = (drawn(shape, "uint8") for shape in SHAPES[name])
        (found,) = built.run(proto, {"a": a, "b": b}, target)
        np.testing.assert_array_equal(found, (a.astype(int) - 3) @ (b.astype(int) - 5))
    tasks = extract(built.imported(proto, target).mod, target).values()
    task = max(tasks, key=lambda one: one.workload.flops)
    func = default_schedule(task.mod, target).mod["main"]
    assert instruction in compiled({"main": func}, target).inspect_source("asm")


def of_keys(rows, depth, zeros):
    """The product of two heads' queries and keys, each (rows, heads, depth)."""
    proto = product((2, rows, depth), (2, depth, rows), ("uint8", "uint8"), zeros)
    turns = {"a": [1, 0, 2], "b": [1, 2, 0]}
    nodes = [node("Transpose", f"{name}s", name, perm=perm) for name, perm in turns.items()]
    made = helper.make_graph(
        [*nodes, *proto.graph.node],
        "keys",
        [helper.make_tensor_value_info(f"{name}s", 2, (rows, 2, depth)) for name in turns],
        proto.graph.output,
        proto.graph.initializer,
    )
    return helper.make_model(made, opset_imports=proto.opset_import, ir_version=9)


@pytest.mark.parametrize("target", INSTRUCTIONS.values(), ids=INSTRUCTIONS)
@pytest.mark.parametrize(
    ("rows", "depth", "zeros"),
    [(49, 32, (0, 128)), (50, 64, (131, 7)), (77, 30, (0, 128)), (197, 12, (131, 7))],
)
def test_keys_that_were_transposed_are_packed_by_their_rows(rows, depth, zeros, target):
    proto = of_keys(rows, depth, zeros)
    a, b = (drawn((rows, 2, depth), "uint8") for _ in "ab")
    here = target if not lacks(target.triple, target.cpu, target.features) else built.HOST
    (found,) = built.run(proto, {"as": a, "bs": b}, here)
    left, right = (
        one.astype(int).transpose(1, 0, 2) - z for one, z in zip((a, b), zeros, strict=True)
    )
    np.testing.assert_array_equal(found, left @ right.transpose(0, 2, 1))
    shapes = [shape_of(one) for one in made(built.imported(proto, target).mod)]
    assert (2, rows, depth) in shapes
    assert (2, depth, rows) not in shapes


def made(mod):
    """The results of a module's functions that are of signed bytes."""
    funcs = [func for func in mod.functions.values() if isinstance(func, tirx.PrimFunc)]
    return [func.params[-1] for func in funcs if str(func.params[-1].dtype) == "int8"]
