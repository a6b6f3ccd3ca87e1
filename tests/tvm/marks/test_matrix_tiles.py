"""Sums of bytes by tiles of a matrix: the same to the last bit, whatever is left over."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.byte_models import Products, extreme, integers, product
from helpers.graphs import node, typed
from helpers.ranges import opened
from helpers.together import Together
from onnx import numpy_helper

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.blocks import leaves
from ansor_deploy.codegen.lengths.bound import Bound
from ansor_deploy.codegen.lengths.cut import cut
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.marks.matrix_tiles import MATRIX
from ansor_deploy.model.batches import Span
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

AMX = replace(load_target("x86-64-v4-amx", [shipped("targets")]), cores=1)
MISSING = lacks(AMX.triple, AMX.cpu, AMX.features)
RUNS = pytest.mark.skipif(bool(MISSING), reason=f"this processor lacks {', '.join(MISSING)}")
RNG = np.random.default_rng(0)


SHAPES = [(49, 128, 64), (33, 80, 117), (6, 96, 49), (70, 272, 10)]


@pytest.fixture(scope="module")
def products():
    return Products(SHAPES, AMX)


@RUNS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_sum_saturates(shape, products):
    products.assert_no_sum_saturates(shape)


@RUNS
@pytest.mark.parametrize("rows", [3136, 80], ids=str)
def test_cores_set_sizes_for_themselves(rows):
    """Of many tasks, and of so few that some chunks of them are empty."""
    proto = product(rows, 64, 16)
    x = RNG.integers(0, 256, (rows, 64)).astype(np.uint8)
    weight = numpy_helper.to_array(proto.graph.initializer[0])
    (found,) = built.run(proto, {"x": x}, replace(AMX, cores=2))
    np.testing.assert_array_equal(found, x.astype(np.int32) @ weight.astype(np.int32))


@pytest.mark.parametrize(
    ("shape", "instruction"),
    [((33, 80, 117), "tdpbusd"), ((1, 256, 64), "vpdpbusd"), ((64, 32, 16), "vpdpbusd")],
    ids=str,
)
def test_many_rows_and_steps_are_a_matrix(shape, instruction):
    code = built.machine_code(product(*shape), AMX)
    assert instruction in code
    assert ("tdpbusd" in code) == ("vpdpbusd" not in code)
    assert code.count("ldtilecfg") == code.count("tilerelease")


def test_matrices_prefetch_between_their_products():
    code = built.machine_code(product(64, 1024, 128), AMX)
    assert "prefetcht1" in code
    assert "tdpbusd" in code


@RUNS
def test_rows_that_do_not_count_are_computed_with_others():
    """The last tile ends where a run decides, which the size of a register cannot."""
    weight = extreme(256, 20)
    made = node("MatMulInteger", "x w", "o")
    proto = typed([made], {"x": ("uint8", (1, "n", 256))}, {"o": "int32"}, {"w": weight})
    opened_up = import_model(opened(proto, {"x": (1, Span(1, 128), 256)}), AMX)
    warned = []
    tasks = extract(opened_up.mod, AMX)
    function = built.main_of(compile_model(opened_up, tasks, {}, AMX, warn=warned.append))
    for length in (128, 77, 1):
        room = RNG.integers(0, 256, (1, 128, 256)).astype(np.uint8)
        given = tvm.runtime.tensor(room), tvm.runtime.tensor(np.array(length, np.int64))
        wanted = room[:, :length].astype(np.int32) @ weight.astype(np.int32)
        np.testing.assert_array_equal(function(*given)[0].numpy()[:, :length], wanted)
    assert not warned


def test_a_run_skips_registers_as_a_whole():
    (task,) = extract(built.imported(product(64, 256, 64), AMX).mod, AMX).values()
    body = default_schedule(task.mod, AMX).mod["main"].body
    found, number = list(leaves(body)), tirx.Var("n", "int32")
    limits = [{(one.block.iter_vars[0].var, 0): Bound.of(number)} for one in found]
    made = cut(body, found, limits, {number: (0, number)})
    around = [one for one in collect(made, tirx.IfThenElse) if _sums_by_matrices(one)]
    assert around
    assert all(len(collect(one, tvm.s_tir.SBlock)) > 1 for one in around)


def _sums_by_matrices(stmt):
    return any(MATRIX in (loop.annotations or {}) for loop in collect(stmt, tirx.For))


CONVOLUTIONS = {
    "padded": ((32, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    "in steps": ((48, 32, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "of few channels": ((32, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    "of taps side by side": ((16, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "of one tap": ((48, 64, 1, 1), {}),
    "of one tap, in steps": ((20, 80, 1, 1), {"strides": [2, 2]}),
}


ZERO = 131


def convolved(name):
    size, given = CONVOLUTIONS[name]
    made = node("ConvInteger", "x w z", "o", **given)
    return integers(made, extreme(*size), 1, size[1], 18, 19, z=np.uint8(ZERO))


@pytest.fixture(scope="module")
def images():
    """Of each convolution the model and its input, and what a library makes of all."""
    models = {name: convolved(name) for name in CONVOLUTIONS}
    shapes = {name: (1, size[1], 18, 19) for name, (size, _) in CONVOLUTIONS.items()}
    feeds = {name: {"x": RNG.integers(0, 256, one, np.uint8)} for name, one in shapes.items()}
    return models, Together(models, feeds, AMX)


@RUNS
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_rows_of_an_image_are_rows_of_a_matrix(name, images):
    proto, made = images[0][name], images[1]
    x, weight = made.feeds[name]["x"], numpy_helper.to_array(proto.graph.initializer[0])
    wanted = convolution(x.astype(np.int32) - ZERO, weight, **CONVOLUTIONS[name][1])
    np.testing.assert_array_equal(made.outputs(name)[0], wanted)
    assert "tdpbusd" in built.machine_code(proto, AMX)


def convolution(x, weight, pads=(0, 0, 0, 0), strides=(1, 1)):
    """The sums of a convolution of integers."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))
    read = windows[:, :, :: strides[0], :: strides[1]]
    return np.einsum("nchwij,ocij->nohw", read, weight.astype(np.int32))


REFUSED = """
import ctypes, sys
from ansor_deploy.errors import DeviceError
from ansor_deploy.runtime.functions import open_machine
class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
memory = ctypes.create_string_buffer(4096)
small = Stack(ctypes.addressof(memory), 0, 4096)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(small), None) == 0
try:
    open_machine(sys.argv[1], ["main"])
except DeviceError as error:
    print(error.text)
"""


@RUNS
def test_a_process_that_may_not_have_the_registers_is_refused_in_words(tmp_path):
    """Linux gives them to none that handles signals on a stack without room for them."""
    built.compiled(product(32, 64, 32), AMX).export(path := tmp_path / "model.so", AMX)
    words = [sys.executable, "-c", REFUSED, str(path)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "amx-tile" in said.stdout, said.stderr
