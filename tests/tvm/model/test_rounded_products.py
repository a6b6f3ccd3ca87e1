"""Rows that may be rounded to bytes are so as ONNX Runtime rounds them, and summed up at once."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.few_bits import few_bits_product
from helpers.graphs import randn
from helpers.together import Together

from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

AVX2, WIDE = (load_target(f"intel-cpu-{name}", [shipped("targets")]) for name in ("avx2", "avx512"))
TARGETS = {
    "VNNI": replace(WIDE, cpu="x86-64-v4", features=("+avx512vnni",), cores=1),
    "AVX2": replace(AVX2, cpu="x86-64-v3", cores=1),
}
# Rows, bits, steps of a block, of a row, and columns; and whether there are zero points.
SHAPES = {
    "of one row": ((1, 4, 32, 128, 64), False),
    "of odd columns": ((3, 4, 16, 64, 100), False),
    "of odd steps": ((2, 8, 32, 150, 33), True),
    "of many rows": ((37, 4, 64, 128, 48), True),
    "of bytes": ((1, 8, 128, 256, 48), False),
    "of bytes around any zero": ((9, 8, 32, 64, 32), True),
}


def product(rows, bits, size, depth, columns, *, zeros):
    """A MatMulNBits that may round its rows."""
    blocks = -(-depth // size)
    packed = (columns, -(-blocks * bits // 8))
    points = np.random.default_rng(1).integers(0, 256, packed, np.uint8) if zeros else None
    return few_bits_product(rows, bits, size, depth, columns, points, accuracy_level=4)


@pytest.fixture(scope="module", params=TARGETS)
def products(request):
    target = TARGETS[request.param]
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor lacks the instructions")
    feeds = {name: {"x": randn(7, shape[0], shape[3])} for name, (shape, _) in SHAPES.items()}
    for one in feeds.values():
        one["x"][0, :64] = 0  # a block of nothing
    models = {name: product(*shape, zeros=zeros) for name, (shape, zeros) in SHAPES.items()}
    return Together(models, feeds, target)


@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_rounded_as_by_onnx_runtime(name, products):
    (have,), (want,) = products.outputs(name), products.expected(name)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("name", "shape", "instruction"),
    [
        ("VNNI", "of odd columns", "vpdpbusd"),
        ("VNNI", "of bytes", "vpdpbusd"),
        ("AVX2", "of odd columns", "vpmaddubsw"),
    ],
)
def test_four_steps_are_summed_up_at_once(name, shape, instruction):
    made = built.machine_code(product(*SHAPES[shape][0], zeros=False), TARGETS[name])
    assert instruction in made
    assert "mulld" not in made


def test_bytes_whose_pairs_could_saturate_are_multiplied_as_floats():
    made = built.machine_code(product(*SHAPES["of bytes"][0], zeros=False), TARGETS["AVX2"])
    assert "vfmadd" in made
    assert "vpmaddubsw" not in made


def test_four_steps_of_the_largest_numbers_do_not_saturate():
    rows, depth = 1, 64
    proto = product(rows, 4, 32, depth, 16, zeros=False)
    (steps,) = (one for one in proto.graph.initializer if one.data_type == one.UINT8)
    steps.raw_data = b"\xff" * len(steps.raw_data)
    (have,) = built.run(proto, {"x": -np.ones((rows, depth), np.float32)}, target=TARGETS["AVX2"])
    (want,) = built.graphs.run(proto, {"x": -np.ones((rows, depth), np.float32)})
    np.testing.assert_allclose(have, want, rtol=1e-5)


def test_weights_take_their_bits_and_scales():
    block = built.compiled(product(1, 4, 32, 256, 256, zeros=False), TARGETS["VNNI"]).weights.block
    assert len(block) <= 1.01 * 256 * 256 * (1 / 2 + 4 / 32)


def test_no_rule_raises_where_a_search_asks_for_all_sketches():
    target = TARGETS["VNNI"]
    tasks = extract(built.imported(product(3, 4, 32, 64, 32, zeros=False), target).mod, target)
    for task in tasks.values():
        assert not derive(task.mod, target, shipped_rules(target.kind)).faults
