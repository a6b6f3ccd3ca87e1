"""Libraries for GPUs: their host code and the source of their kernels, without a GPU.

Nothing of NVIDIA's runs here: `helpers/cuda_on_cpu.py` has what stands in for the driver and the
GPU. What NVIDIA's compiler makes of the source is only looked at, where it is installed.
"""

import ctypes
import gc
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from helpers import cuda_on_cpu, graphs
from helpers.built import imported
from helpers.cuda_on_cpu import LentByGpu
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import tvm
from ansor_deploy.codegen.gpu import launcher, nvrtc
from ansor_deploy.codegen.llvm_text import header
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.errors import AnsorError, ModelError, UsageError
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.runtime import native
from ansor_deploy.runtime.functions import into_functions
from ansor_deploy.runtime.gpu_code import GpuKernel
from ansor_deploy.runtime.model import Model
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

V100 = load_target("v100", [shipped("targets")])
X = {"x": (4, 8)}
W = {"w": randn(1, 8, 8)}
IMAGE = {"x": (1, 3, 9, 9)}
TAPS = {"w": randn(2, 4, 3, 3, 3), "b": randn(3, 4)}
PRODUCT = [node("MatMul", "x w", "a"), node("Softmax", "a", "b")]
CONVOLUTION = node("Conv", "x w b", "c", pads=[1, 1, 1, 1])


def window(op, **attributes):
    return node(op, "r", "y", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], **attributes)


MODELS = {
    "two kernels": model(PRODUCT, X, ["b"], W),
    "several results": model(PRODUCT, X, ["a", "b"], W),
    "an input and a weight are results": model(
        [*PRODUCT, node("Identity", "x", "i"), node("Identity", "w", "j")], X, ["b", "i", "j"], W
    ),
    "a view is a result": model([*PRODUCT, node("Flatten", "b", "f", axis=0)], X, ["f"], W),
    "convolution": model(
        [CONVOLUTION, node("Relu", "c", "r"), window("MaxPool")], IMAGE, ["y"], TAPS
    ),
    "averages": model(
        [CONVOLUTION, node("Relu", "c", "r"), window("AveragePool")], IMAGE, ["y", "r"], TAPS
    ),
    "long rows": model(
        [node("ReduceMean", "x", "m", axes=[-1]), node("ReduceMax", "x", "y", axes=[-1])],
        {"x": (3, 300)},
        ["m", "y"],
    ),
    "one number": model([node("ReduceSum", "x", "y", keepdims=0)], {"x": (40, 5)}, ["y"]),
    "a recurrence, by one thread": model(
        [node("LSTM", "x w r", "y", hidden_size=16)],
        {"x": (3, 2, 8)},
        ["y"],
        {"w": randn(6, 1, 64, 8), "r": randn(7, 1, 64, 16)},
    ),
    "a selection, by one thread": model(
        [node("TopK", "x k", "y i", axis=0)], {"x": (30, 5)}, ["y"], {"k": np.array([3])}
    ),
    "a row with a matrix, summed by several threads": model(
        [node("MatMul", "x w", "y")], {"x": (1, 64)}, ["y"], {"w": randn(1, 64, 50)}
    ),
    "tiles cut short": model(
        [node("MatMul", "x w", "y")], {"x": (17, 24)}, ["y"], {"w": randn(1, 24, 37)}
    ),
    "parts": model(
        [
            node("Split", "x", "p q", axis=1),
            node("Tanh", "p", "t"),
            node("Concat", "t q x", "y", axis=1),
        ],
        X,
        ["y"],
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which compiles the kernels' source for this machine")
    return tmp_path_factory.mktemp("gpu")


@pytest.fixture(scope="module")
def driver(folder):
    with pytest.MonkeyPatch.context() as patch:
        cuda_on_cpu.on_cpu(patch, folder)
        yield cuda_on_cpu.driver(folder)


@pytest.fixture
def gpu(driver):
    cuda_on_cpu.be_a_gpu(driver, "sm_70")
    yield driver
    cuda_on_cpu.be_a_gpu(driver, "")


def library(proto, path):
    made = imported(proto, V100)
    compile_model(made, extract(made.mod, V100), {}, V100).export(path, V100)
    return path


def number(driver, name):
    return ctypes.c_int.in_dll(driver, f"ansor_{name}").value


def ran(function, feeds, like):
    outputs = [np.empty(one.shape, one.dtype) for one in like]
    function(list(feeds.values()), outputs)
    return outputs


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_it_should(name, gpu, folder):
    proto = MODELS[name]
    path = library(proto, folder / f"{name.replace(' ', '_')}.so")
    (function,) = into_functions(path, 1, 1)[1]
    for seed in (0, 1):  # the second run finds what the first has left
        feeds = graphs.random_feeds(proto, seed)
        want = graphs.run(proto, feeds)
        for have, wanted in zip(ran(function, feeds, want), want, strict=True):
            assert compare(have, wanted)[0]


def test_nan_and_infinities_are_kept(gpu, folder):
    proto = model([node("Relu", "x", "r"), node("ReduceMax", "x", "y", axes=[-1])], X, ["r", "y"])
    x = randn(5, 4, 8)
    x[0, 3], x[1, 0], x[2] = np.nan, np.inf, -np.inf
    (function,) = into_functions(library(proto, folder / "edges.so"), 1, 1)[1]
    want = [np.maximum(x, 0), x.max(axis=-1, keepdims=True)]
    for have, wanted in zip(ran(function, {"x": x}, want), want, strict=True):
        np.testing.assert_array_equal(have, wanted)


def test_indices_are_checked(gpu, folder):
    proto = looked_up()
    (function,) = into_functions(library(proto, folder / "indices.so"), 1, 1)[1]
    feeds = {"i": np.array([[0, -7, 6]])}
    want = graphs.run(proto, feeds)
    assert compare(ran(function, feeds, want)[0], want[0])[0]
    with pytest.raises(IndexError, match=r"Gather: an index is not in -7 \.\. 6"):
        ran(function, {"i": np.array([[0, 1, 7]])}, want)


def looked_up():
    nodes = [node("Gather", "w i", "g"), node("Relu", "g", "y")]
    ends = {"i": ("int64", (1, 3))}, {"y": ("float32", (1, 3, 8))}
    return graphs.typed(nodes, *ends, {"w": randn(4, 7, 8)})


def test_all_is_given_back_with_the_last_that_uses_it(gpu, folder):
    path = library(MODELS["two kernels"], folder / "shared.so")
    before = number(gpu, "live"), number(gpu, "modules")
    first, second = (into_functions(path, 1, 1)[1] for _ in range(2))
    assert (number(gpu, "live"), number(gpu, "modules")) == (before[0] + 2, before[1] + 2)
    del first
    gc.collect()
    assert number(gpu, "modules") == before[1] + 2
    feeds = graphs.random_feeds(MODELS["two kernels"])
    want = graphs.run(MODELS["two kernels"], feeds)
    assert compare(ran(second[0], feeds, want)[0], want[0])[0]
    del second
    gc.collect()
    assert (number(gpu, "live"), number(gpu, "modules")) == before


def test_kernels_are_one_graph_after_the_first_run(gpu, folder):
    proto = MODELS["two kernels"]
    (function,) = into_functions(library(proto, folder / "graph.so"), 1, 1)[1]
    graphs_before = number(gpu, "graphs")
    for runs in range(3):
        feeds = graphs.random_feeds(proto, runs)
        want = graphs.run(proto, feeds)
        assert compare(ran(function, feeds, want)[0], want[0])[0]
        assert number(gpu, "graphs") == graphs_before + runs


def test_where_no_graph_is_to_be_had_kernels_are_launched(gpu, folder):
    proto = MODELS["two kernels"]
    (function,) = into_functions(library(proto, folder / "no_graph.so"), 1, 1)[1]
    records = ctypes.c_int.in_dll(gpu, "ansor_records")
    records.value = 0
    try:
        for seed in range(3):
            feeds = graphs.random_feeds(proto, seed)
            want = graphs.run(proto, feeds)
            assert compare(ran(function, feeds, want)[0], want[0])[0]
    finally:
        records.value = 1


def test_tensors_on_the_gpu_stay_there_and_the_callers_stream_is_taken(gpu, folder):
    proto = MODELS["two kernels"]
    path = library(proto, folder / "stays.so")
    (interface,) = interfaces_of(proto)
    made = Model(path, {**interface.to_json(), "target": V100.to_json()}, 1)
    feeds = graphs.random_feeds(proto)
    (want,) = graphs.run(proto, feeds)
    waits, result = number(gpu, "waits"), np.empty_like(want)
    with native.ffi().use_raw_stream(native.ffi().device("cuda", 0), 4242):
        made.run_into({"b": LentByGpu(result)}, x=LentByGpu(feeds["x"]))
    assert compare(result, want)[0]
    assert number(gpu, "waits") == waits
    assert ctypes.c_void_p.in_dll(gpu, "ansor_stream").value == 4242
    assert compare(made(x=LentByGpu(feeds["x"]))["b"], want)[0]
    assert number(gpu, "waits") == waits + 1
    with pytest.raises(UsageError, match=r"x: float32\[4, 4\] given"):
        made(x=LentByGpu(np.zeros((4, 4), "float32")))


def interfaces_of(proto):
    return imported(proto, V100).interfaces


def test_where_there_is_no_gpu_it_is_said(driver, folder):
    path = library(MODELS["two kernels"], folder / "none.so")
    with pytest.raises(AnsorError, match=r"does not start: no CUDA-capable device is detected"):
        into_functions(path, 1, 1)


@pytest.mark.parametrize(("arch", "fits"), [("compute_70", True), ("sm_60", False)])
def test_a_newer_gpu_gets_ptx_and_an_older_one_an_error(arch, fits, gpu, folder):
    path = library(MODELS["two kernels"], folder / f"{arch}.so")
    cuda_on_cpu.be_a_gpu(gpu, arch)
    if fits:
        into_functions(path, 1, 1)
        return
    with pytest.raises(AnsorError, match="this GPU is older than the library's: sm_70"):
        into_functions(path, 1, 1)


def test_where_there_is_no_driver_it_is_said(driver, folder):
    path = library(MODELS["two kernels"], folder / "no_driver.so")
    program = """
        import ctypes, sys
        try:
            ctypes.CDLL("libcuda.so.1")
            sys.exit("there is a driver")
        except OSError:
            pass
        from pathlib import Path
        from ansor_deploy.runtime.functions import into_functions
        into_functions(Path(sys.argv[1]), 1, 1)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    if said.startswith("there is a driver"):
        pytest.skip("this machine has NVIDIA's driver")
    assert "needs an NVIDIA GPU: there is no driver here" in said


def test_a_model_that_asks_the_host_is_refused(driver):
    branches = [model([node(op, "x", op)], {"x": (2, 2)}, [op]).graph for op in ("Relu", "Neg")]
    for branch in branches:
        del branch.input[:]
    proto = model(
        [
            node("ReduceSum", "x", "s", keepdims=0),
            node("Cast", "s", "c", to=9),
            node("If", "c", "y", then_branch=branches[0], else_branch=branches[1]),
        ],
        {"x": (2, 2)},
        ["y"],
    )
    made = imported(proto, V100)
    with pytest.raises(ModelError, match="asks the host"):
        compile_model(made, extract(made.mod, V100), {}, V100)


def asks_the_host(ins, outs):
    T = tvm.script.ir_builder.tirx  # noqa: N806
    with tvm.script.ir_builder.IRBuilder() as builder:
        with T.Assert(T.buffer_proxy(ins[0])[0, 0] < 1, "below one", "ValueError"):
            pass
        return builder.get()


def test_what_no_gpu_can_do_is_refused(driver, monkeypatch):
    def relu(call):
        asked = lambda x: tvm.te.extern([x.shape], [x], asks_the_host, dtype="float32")  # noqa: E731
        return call.bb.emit_te(asked, call.inputs[0], primfunc_name_hint="asked")

    monkeypatch.setitem(OPERATORS, ("", "Relu"), Operator("Relu", convert=relu))
    made = imported(model([node("Relu", "x", "y")], X), V100)
    with pytest.raises(ModelError, match="cannot be compiled for a GPU: a part of it runs on no"):
        compile_model(made, extract(made.mod, V100), {}, V100)


def test_half_precision_is_refused():
    made = imported(halves(), V100)
    with pytest.raises(ModelError, match=r"it has types of 16 bits \(float16\)"):
        compile_model(made, extract(made.mod, V100), {}, V100)


def halves():
    return graphs.typed([node("Exp", "x", "y")], {"x": ("float16", (2, 8))}, {"y": "float16"})


def test_the_launcher_is_made_of_its_source():
    written = launcher.TEXT.read_text()
    assert written.partition("\n")[0] == header(launcher.SOURCE), "run docs/make_llvm.py"


def test_a_kernel_is_kept_whole():
    kernel = GpuKernel((), (64, 4), b"\x7fELF\0", b".version\0")
    assert GpuKernel.from_bytes(kernel.to_bytes()) == kernel


@pytest.mark.parametrize("name", ["v100", "a100", "h100"])
def test_the_compiler_makes_code_for_a_gpu_and_for_newer_ones(name):
    nvrtc_or_skip()
    arch = load_target(name, [shipped("targets")]).gpu.arch
    source = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
    cubin, ptx = nvrtc.compiled(source, arch)
    assert cubin.startswith(b"\x7fELF")
    assert f".target {arch}".encode() in ptx
    with pytest.raises(nvrtc.CudaError, match="expected a"):
        nvrtc.compiled("void", arch)


def nvrtc_or_skip():
    try:
        nvrtc.check()
    except AnsorError:
        pytest.skip("needs ansor-deploy[cuda]")
