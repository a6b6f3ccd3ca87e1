"""Candidates on a board that has nothing but Python: the agent, the bundle and the host's side.

The board is this machine behind a pipe, started with `python3 -I -S -B` from the unpacked bundle.
"""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
from helpers import graphs
from helpers.built import HOST, compiled
from helpers.kernels import ASTRAY, ENDLESS
from helpers.local_board import LocalBoard, open_site
from helpers.processes import is_running, wait_until_gone
from msgspec import to_builtins
from tvm import te

from ansor_deploy.codegen.kernels import candidate as codegen
from ansor_deploy.codegen.kernels.signature import signature
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.devices import board as boards
from ansor_deploy.devices.arrivals import arrivals
from ansor_deploy.devices.remote_model import RemoteModel
from ansor_deploy.errors import AnsorError, DeviceError, DeviceLost, UsageError
from ansor_deploy.model.prepare import prepare
from ansor_deploy.runtime.model import Model
from ansor_deploy.ship.describe import kernels, other_places
from ansor_deploy.ship.race.timing import profile
from ansor_deploy.ship.race.untuned import compare_speed
from ansor_deploy.ship.verify.draws import seeded_inputs
from ansor_deploy.space.canonical_text import canonical_text, parse
from ansor_deploy.system.worker import WorkerFailure

RUN = "ansor_deploy.measure.runner:run"
REFERENCE = "ansor_deploy.measure.runner:reference"
TIMEOUT = 20.0


def times(factor, dtype="float32"):
    x = te.placeholder((64, 64), name="x", dtype=dtype)
    y = te.compute((64, 64), lambda i, j: x[i, j] * te.const(factor, dtype), name="y")
    return canonical_text(te.create_prim_func([x, y]))


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    """Payloads for the runner, by what becomes of them; "path" is of this machine."""
    folder = tmp_path_factory.mktemp("candidates")
    texts = {
        "right": times(2),
        "wrong": times(3),
        "half": times(2, "bfloat16"),
        "endless": ENDLESS,
        "astray": ASTRAY,
    }
    made = {}
    for name, text in texts.items():
        payload = {"text": text, "how": "plain", "target": HOST.to_json()}
        built = codegen.build({**payload, "path": str(folder / f"{name}.so")})
        spec = signature(parse(text)).to_json()
        made[name] = {**built, "signature": spec, "seed": 0, "best": None}
    return made


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return LocalBoard(tmp_path_factory.mktemp("board"))


@pytest.fixture
def opened(board):
    """Open a site on the board; what is left of it afterwards is a failure."""
    sites, connections = [], []

    def open_one(**options):
        def connect():
            connections.append(board.connect())
            return connections[-1]

        sites.append(open_site("testboard", connect, HOST.cores, **options))
        return sites[-1]

    yield open_one
    for site in sites:
        site.close()
    for stream in [stream for one in connections for stream in one.streams]:
        stream.close()
        stream.reap()
    assert board.sessions() == []


@pytest.fixture
def site(opened):
    return opened()


def sent(site, payload, expected):
    return {**payload, "path": site.put(Path(payload["path"])), "expected": expected}


def reference(site, payload):
    place = site.scratch("expected")
    site.call(REFERENCE, sent(site, payload, place), TIMEOUT)
    return place


def test_a_candidate_is_checked_and_timed(site, candidates):
    expected = reference(site, candidates["right"])
    found = site.call(RUN, sent(site, candidates["right"], expected), TIMEOUT)
    assert (found["error"], found["errors"]["max_abs_err"]) == ("", 0)
    assert all(seconds > 0 for seconds in found["seconds"])
    found = site.call(RUN, sent(site, candidates["wrong"], expected), TIMEOUT)
    assert (found["error"], found["seconds"]) == ("wrong-output", [])


def test_half_precision_runs_on_a_board(site, candidates):
    expected = reference(site, candidates["half"])
    assert site.call(RUN, sent(site, candidates["half"], expected), TIMEOUT)["error"] == ""


def test_a_crash_and_an_endless_loop_cost_the_candidate_only(site, candidates):
    expected = reference(site, candidates["right"])
    with pytest.raises(WorkerFailure) as caught:
        site.call(RUN, sent(site, candidates["astray"], expected), TIMEOUT)
    assert (caught.value.kind, caught.value.message[:7]) == ("crash", "SIGSEGV")
    with pytest.raises(WorkerFailure) as caught:
        site.call(RUN, sent(site, candidates["endless"], expected), 0.5)
    assert (caught.value.kind, caught.value.message) == ("timeout", "killed after 0.5 s")
    with pytest.raises(WorkerFailure) as caught:
        site.call(RUN, {}, TIMEOUT)
    assert caught.value.kind == "raised"
    found = site.call(RUN, sent(site, candidates["right"], expected), TIMEOUT)
    assert found["error"] == ""


def test_the_board_runs_what_the_bundle_has_and_no_compiler(site, board):
    agent = psutil.Process(site.info.pid)
    (child,) = agent.children()
    ours = [path for path in _mapped(child.pid) if "tvm" in path or "numpy" in path]
    assert len(ours) > 3
    assert all(path.startswith(str(board.cache)) for path in ours)
    assert not any("compiler" in path for path in ours)
    assert not list(board.cache.glob("*/tvm/**/*.py"))
    assert child.cmdline()[1:4] == ["-I", "-S", "-B"]


def test_where_memory_runs_out_the_candidate_goes_first(site):
    (child,) = psutil.Process(site.info.pid).children()
    pids = (site.info.pid, child.pid)
    scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in pids]
    assert scores[0] < scores[1] == 1000


def _mapped(pid):
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}


def test_files_go_there_and_back(site, tmp_path):
    for size in (0, 1, boards.CHUNK, 2 * boards.CHUNK + 1):
        path = tmp_path / "file"
        path.write_bytes(os.urandom(size))
        place = site.put(path)
        assert site.get(place, size) == path.read_bytes()
        site.drop(place)
        site.drop(place)
        with pytest.raises(DeviceLost, match="No such file"):
            site.get(place, 1)
        site.start()  # a board at fault gets a fresh session


def test_a_file_of_an_earlier_session_is_gone_with_it(opened, tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    earlier = opened()
    place = earlier.put(tmp_path / "file")
    earlier.close()
    opened().drop(place)


@pytest.mark.parametrize("place", ["/etc/hostname", "../upload.lock", "a/../../b", "."])
def test_other_files_are_out_of_reach(site, place):
    with pytest.raises(DeviceLost, match="outside"):
        site.get(place, 1)


def test_restart_gives_another_process(site):
    agent = psutil.Process(site.info.pid)
    (before,) = agent.children()
    site.restart()
    wait_until_gone([before.pid])
    assert site.call("ansor_deploy.devices.library_calls:threads", {}, TIMEOUT) == HOST.cores


def test_a_killed_agent_is_a_lost_device_and_leaves_no_process(opened, candidates):
    site = opened()
    expected = reference(site, candidates["right"])
    pids = [site.info.pid, *(c.pid for c in psutil.Process(site.info.pid).children())]
    payload = sent(site, candidates["endless"], expected)
    killer = threading.Timer(0.5, os.kill, (site.info.pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(DeviceLost, match="testboard is lost: its agent ended"):
        site.call(RUN, payload, 600)
    killer.join()
    wait_until_gone(pids)
    with pytest.raises(DeviceLost, match="testboard is lost"):
        site.get(expected, 1)
    opened()  # takes the folder away that the dead one left


@pytest.mark.parametrize("busy", [False, True])
def test_hanging_up_ends_agent_and_candidate(opened, board, candidates, busy):
    site = opened()
    pids = [site.info.pid, *(c.pid for c in psutil.Process(site.info.pid).children())]
    if busy:
        payload = sent(site, candidates["endless"], reference(site, candidates["right"]))
        failures = []
        caller = threading.Thread(target=_lost_call, args=(site, payload, failures))
        caller.start()
        time.sleep(0.5)
        site.close()
        caller.join(10)
        assert [type(failure) for failure in failures] == [DeviceLost]
    site.close()
    site.close()
    wait_until_gone(pids)
    assert board.sessions() == []


def _lost_call(site, payload, failures):
    try:
        site.call(RUN, payload, 600)
    except DeviceLost as failure:
        failures.append(failure)


def test_an_agent_that_hears_nothing_ends(opened, monkeypatch):
    monkeypatch.setattr(boards, "SILENCE_SECONDS", 2.0)
    monkeypatch.setattr(boards, "PING_SECONDS", 0.2)
    site = opened()
    time.sleep(3)
    site.drop(site.scratch("nothing"))  # the pings kept it
    site._agent._ended.set()  # and now they stop, and nothing else does
    wait_until_gone([site.info.pid])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_agent_that_is_asked_to_end_takes_all_along(opened, board, number):
    site = opened()
    pids = [site.info.pid, *(c.pid for c in psutil.Process(site.info.pid).children())]
    os.kill(site.info.pid, number)
    wait_until_gone(pids)
    assert board.sessions() == []
    with pytest.raises(DeviceLost, match="testboard is lost"):
        site.restart()


@pytest.mark.parametrize("data", [b"\xff" * 64, b"\0\0\0\1\0\0\0\0{", b"\0\0\0\2\0\0\0\0{}"])
def test_an_agent_that_hears_nonsense_ends(opened, data):
    site = opened()
    site._agent._stream.write(data, 5)
    wait_until_gone([site.info.pid])


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("another")])
def test_an_agent_that_cannot_serve_says_why(opened, board, make):
    lock = board.cache / "agent.lock"
    lock.unlink(missing_ok=True)
    make(lock)
    with pytest.raises(DeviceLost, match=r"testboard is lost: its agent ended: .*agent\.lock"):
        opened()
    lock.rmdir() if lock.is_dir() and not lock.is_symlink() else lock.unlink()


def test_a_second_host_waits_for_its_turn(opened):
    first, told = opened(), []

    def free(holder):
        if not told:
            told.append(holder)
            first.close()

    second = opened(waiting=free)
    assert told == [f"process {first.info.pid}, started from the board itself"]
    assert second.call("ansor_deploy.devices.library_calls:threads", {}, TIMEOUT) == HOST.cores


def test_a_host_that_waits_too_long_is_told_who_has_the_board(opened):
    first = opened()
    with pytest.raises(DeviceError, match=f"in use by process {first.info.pid}"):
        opened(patience=0.5)
    assert is_running(first.info.pid)


# Whole models


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """(path, manifest) of a small network."""
    path = tmp_path_factory.mktemp("library") / "net.so"
    proto = graphs.model(
        [graphs.node("MatMul", "x w", "h"), graphs.node("Relu", "h", "y")],
        {"x": (4, 32)},
        constants={"w": graphs.randn(0, 32, 16)},
    )
    compiled(proto).export(path, HOST)
    tensors = {"x": [4, 32], "y": [4, 16]}
    entries = {n: [{"name": n, "shape": s, "dtype": "float32"}] for n, s in tensors.items()}
    manifest = {"inputs": entries["x"], "outputs": entries["y"], "target": HOST.to_json()}
    return path, manifest


def test_a_model_of_several_shapes_on_a_board(site, tmp_path):
    onnx.save(graphs.batches(), tmp_path / "net.onnx")
    shapes = ((1, 3, 8, 8), (2, 3, 8, 8))
    model = prepare(tmp_path / "net.onnx", HOST, [{"x": shape} for shape in shapes])
    compile_model(model.imported, model.by_function, {}, HOST).export(tmp_path / "net.so", HOST)
    variants = [one.to_json() for one in model.imported.interfaces]
    manifest = {**variants[0], "variants": variants, "target": HOST.to_json()}
    library = (tmp_path / "net.so", manifest)
    there, here = RemoteModel(site, *library), Model(*library)
    for shape in (*shapes, shapes[0]):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        np.testing.assert_array_equal(there(x=x)["y"], here(x=x)["y"])
        assert len(there.times({"x": x}, 2)) == 2
    assert len(there.times({"x": x}, 20_000)) == 20_000  # more than one answer holds
    feeds = [{"x": np.zeros(shape, "float32")} for shape in shapes]
    served = there.serve(feeds, 40_000.0, 0.2)  # no Python program begins so many calls
    assert served.begun + served.missed == len(arrivals(40_000.0, 0.2))
    assert served.missed > 0
    assert served.running[0] > 0
    there.close()


def test_a_model_on_a_board_computes_what_it_does_here(site, library):
    there, here = RemoteModel(site, *library), Model(*library)
    for seed in (0, 1):
        inputs = seeded_inputs(here.inputs, seed)
        np.testing.assert_array_equal(there(**inputs)["y"], here(**inputs)["y"])
    compared = compare_speed(there, RemoteModel(site, *library), 0).race
    assert min(compared.ours_ms, compared.theirs_ms) > 0
    with pytest.raises(UsageError, match="x: missing"):
        there()
    there.close()


def test_a_profile_of_a_board_names_the_kernels(site, tmp_path):
    onnx.save(graphs.batches(), tmp_path / "net.onnx")
    model = prepare(tmp_path / "net.onnx", HOST, [{"x": (n, 3, 8, 8)} for n in (1, 2)])
    made = compile_model(model.imported, model.by_function, {}, HOST)
    made.export(tmp_path / "net.so", HOST)
    variants = [one.to_json() for one in model.imported.interfaces]
    tasks = [
        {"name": task.name, "key": task.key.workload, "places": to_builtins(task.places)}
        for task in model.tasks
    ]
    known = {
        "target": HOST.to_json(),
        "tasks": tasks,
        "kernels": to_builtins(kernels(made)),
        "others": to_builtins(other_places(made, model.others)),
    }
    there = RemoteModel(site, tmp_path / "net.so", {**variants[0], "variants": variants, **known})
    for shape, found in profile(there, 0.02):
        assert 0 < found.seconds < 10
        assert found.kernels[-1].shapes[-1] == shape.outputs[0].shape
        assert [node["name"] for one in found.kernels for node in one.nodes][-1] == "y"


def test_an_index_out_of_range_on_a_board_is_what_it_is_here(site, tmp_path):
    rows = graphs.randn(0, 4, 8)
    proto = graphs.model(
        [graphs.node("Gather", "rows x", "z"), graphs.node("Cast", "z", "y", to=7)],
        {"x": (3,)},
        constants={"rows": rows},
        dtype=onnx.TensorProto.INT64,
    )
    onnx.save(proto, tmp_path / "net.onnx")
    model = prepare(tmp_path / "net.onnx", HOST)
    compile_model(model.imported, model.by_function, {}, HOST).export(tmp_path / "net.so", HOST)
    manifest = {**model.imported.interfaces[0].to_json(), "target": HOST.to_json()}
    path = tmp_path / "net.so"
    for library in (RemoteModel(site, path, manifest), Model(path, manifest)):
        with pytest.raises(UsageError, match=r"Gather: an index is not in -4 \.\. 3"):
            library(x=np.array([0, 4, 1]))
        library(x=np.array([0, -4, 3]))


def test_a_library_that_the_board_cannot_load_is_told(site, library, tmp_path):
    (tmp_path / "other.so").write_bytes(b"\x7fELF of another machine")
    model = RemoteModel(site, tmp_path / "other.so", library[1])
    with pytest.raises(AnsorError, match=r"does not run on testboard: .*cannot be loaded"):
        model(x=np.zeros((4, 32), "float32"))
