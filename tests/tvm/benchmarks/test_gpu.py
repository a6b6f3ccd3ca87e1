"""The folder for a GPU's machine, run where none is: by a stand-in for the driver and the GPU."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import cuda_on_cpu
from helpers.graphs import model, node, randn

from ansor_deploy.codegen.gpu import nvrtc
from ansor_deploy.errors import AnsorError
from benchmarks.gpu import command, there

PRODUCT = [node("MatMul", "x w", "y")]
NETWORKS = {
    "good": model(PRODUCT, {"x": (1, 16)}, ["y"], {"w": randn(1, 16, 64)}),
    "hangs": model(
        [*PRODUCT, node("Tanh", "y", "z")], {"x": (1, 8)}, ["z"], {"w": randn(1, 8, 32)}
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder, the kernels of one network of which never end."""
    try:
        nvrtc.check()
    except AnsorError:
        pytest.skip("needs ansor-deploy[cuda]")
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which compiles the kernels' source for this machine")
    root = tmp_path_factory.mktemp("gpu")
    cuda_on_cpu.compile_driver(root)
    for name, proto in NETWORKS.items():
        onnx.save(proto, root / f"{name}.onnx")
    with pytest.MonkeyPatch.context() as patch:
        cuda_on_cpu.on_cpu(patch, root)
        files = [str(root / f"{name}.onnx") for name in NETWORKS]
        command.make(root / "out", files, ["v100"], [1, 2], 0)
    for source in root.glob("*.cc"):
        if "tanh" in (text := source.read_text()):
            source.write_text(text.replace(") {\n", ") {\n  for (volatile int go = 1; go;) {}\n"))
            cuda_on_cpu._compile(
                [str(source), f"-I{cuda_on_cpu.FOLDER}"], source.with_suffix(".so")
            )
    return root


def begun(root, *words):
    """The script, in a Python that has NumPy and nothing of ours."""
    packages = str(Path(np.__file__).parents[1])
    driver = {"LD_PRELOAD": str(root / "libcuda.so.1"), "ANSOR_GPU": "sm_70"}
    return subprocess.Popen(
        [sys.executable, root / "out" / "run.py", *map(str, words)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": packages, **driver},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def items_of(root):
    """Processes that run an item of the folder."""
    asked = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        if str(root).encode() in words and b"--item" in words:
            asked.append(path.parent.name)
    return asked


def waited(what):
    end = time.monotonic() + 60
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.mark.slow
def test_a_hung_kernel_costs_its_item_and_a_kill_no_more(made, tmp_path):
    result = tmp_path / "result.json"
    hung = "right hangs-v100 1"
    program = begun(made, result, "--deadline", 30)
    assert waited(lambda: result.exists() and hung in json.loads(result.read_text()))
    assert waited(lambda: items_of(made))
    program.kill()
    program.communicate()
    assert waited(lambda: not items_of(made))
    before = json.loads(result.read_text())
    assert before["right good-v100 2"]["ended"] == "well"

    said, _ = begun(made, result, "--deadline", 8).communicate()
    found = json.loads(result.read_text())
    assert found[hung]["ended"] == "timeout", said
    assert found[hung]["tries"] == 2
    assert found["right good-v100 2"] == before["right good-v100 2"]
    assert found["race good-v100 1"]["seconds"]["ours"]
    assert not items_of(made)
    lines = "\n".join(command.table(found))
    assert f"{hung}: timeout" in lines


def test_a_wrong_output_is_found(made, tmp_path):
    path = made / "out" / "expected" / "good_1.npz"
    kept = path.read_bytes()
    with np.load(path) as file:
        wanted = dict(file)
    wanted["y"][0, 3] += 1
    np.savez(path, **wanted)
    begun(made, tmp_path / "result.json", "--seconds", 10).communicate()
    path.write_bytes(kept)
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["right good-v100 1"]["ended"] == "failed"
    assert "wrong: off by" in found["right good-v100 1"]["message"]


def test_weights_repeat_seeded_numbers_of_their_spread():
    proto = model(PRODUCT, {"x": (1, 128)}, ["y"], {"w": 3 * randn(1, 128, 64)})
    made = command.with_repeated_weights(proto)
    values = onnx.numpy_helper.to_array(made.graph.initializer[0]).reshape(-1)
    assert (values[:99] == values[command._POOL : command._POOL + 99]).all()
    assert np.std(values) == pytest.approx(3, rel=0.1)


def test_inputs_are_the_same_everywhere():
    kinds = {"x": ((2, 3), "float32"), "ids": ((2, 4), "int64")}
    one, other = there.inputs(kinds), there.inputs(kinds)
    assert all((one[name] == other[name]).all() for name in kinds)
    assert one["ids"].dtype == np.int64
