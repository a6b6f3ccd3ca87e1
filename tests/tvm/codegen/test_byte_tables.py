"""Functions of bytes as tables: each byte finds its own, whatever of a vector is there."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.graphs import model, node
from helpers.together import Together
from tvm import te

from ansor_deploy._tvm import tvm
from ansor_deploy.codegen.kernels.lowering import compiled
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

WIDE = replace(
    load_target("intel-cpu-avx512", [shipped("targets")]),
    cpu="x86-64-v4",
    features=("+avx512vbmi",),
    cores=1,
)
AVX512 = replace(WIDE, features=())
AVX2 = replace(WIDE, cpu="x86-64-v3", features=(), vector_bytes=32, vector_registers=16)
SSE4 = replace(AVX2, cpu="x86-64-v2", vector_bytes=16)
TARGETS = {"VBMI": WIDE, "AVX-512": AVX512, "AVX2": AVX2, "SSE4": SSE4}
NEON = load_target("cortex-a53", [shipped("targets")])


COLUMNS = [7, 16, 48, 1000]
KINDS = {"uint8": np.uint8, "int8": np.int8}


def looked_up(kind, columns):
    """A model of a function of bytes, and all bytes as its input."""
    ends = np.iinfo(kind)
    constants = {"scale": np.float32(0.03), "zero": kind(ends.min + 100)}
    nodes = [
        node("QuantizeLinear", "x scale zero", "q"),
        node("DequantizeLinear", "q scale zero", "d"),
        node("Cos", "d", "c"),
        node("QuantizeLinear", "c scale zero", "s"),
        node("Cast", "s", "y", to=1),
    ]
    steps = np.resize(np.arange(ends.min, ends.max + 1), (3, columns)).astype(np.float32)
    x = (steps - constants["zero"]) * np.float32(0.03)
    return model(nodes, {"x": x.shape}, constants=constants), {"x": x}


@pytest.fixture(scope="module", params=TARGETS)
def tables(request):
    target = TARGETS[request.param]
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor lacks the instructions")
    made = {(kind, n): looked_up(KINDS[kind], n) for kind in KINDS for n in COLUMNS}
    models = {at: one for at, (one, _) in made.items()}
    return Together(models, {at: feeds for at, (_, feeds) in made.items()}, target)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_byte_finds_its_own(kind, columns, tables):
    ends, x = np.iinfo(kind), tables.feeds[kind, columns]["x"]
    wanted = np.rint(np.cos(x.astype(np.float64)) / np.float32(0.03)) + ends.min + 100
    (have,) = tables.outputs((kind, columns))
    np.testing.assert_array_equal(have, np.clip(wanted, ends.min, ends.max))


FOUND = [(WIDE, "vperm"), (AVX512, "vpshufb"), (AVX2, "vpshufb"), (SSE4, "pshufb"), (NEON, "tbx")]


@pytest.mark.parametrize(("target", "instruction"), FOUND, ids=[*TARGETS, "NEON"])
def test_where_the_processor_can_a_register_of_them_is_looked_up_at_once(target, instruction):
    table, places = (
        te.placeholder(shape, name=name, dtype="uint8")
        for name, shape in (("table", (256,)), ("places", (4, 64)))
    )
    out = te.compute(places.shape, lambda *at: table[places(*at)])
    mod = tvm.IRModule({"main": te.create_prim_func([table, places, out])})
    func = default_schedule(mod, target).mod["main"]
    code = compiled({"main": func}, target).inspect_source("asm")
    assert instruction in code
    assert "pinsrb" not in code
    assert "ldrb" not in code
