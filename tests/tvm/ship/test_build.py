"""From model to library through the command line, and what the library then does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers import graphs
from helpers.cli_inside import answer, program
from helpers.cli_process import everything, refused
from helpers.graphs import LIGHT_FOLDER, before_softmax, model, node, randn, randomize_weights

import ansor_deploy
from ansor_deploy import runtime
from ansor_deploy.registry.store import Registry
from ansor_deploy.ship.race.race import LOOKS
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from benchmarks.networks import zoo

COMPARED = ("shipped", "tuned_ms", "untuned_ms", "ratio", "interval", "pairs", "verdict", "seen")
BUILD_KEYS = {
    *("kept_default", "origins"),
    *("artifact", "manifest", "outputs", "up_to_date", "tasks", "hits", "misses", "skipped"),
    *("trials", "tune_seconds", "no_room", "latency_ms", *COMPARED, "verify", "verification"),
    *("ran_on", "memory", "quantised", "beside", "preset"),
}
VERIFY_KEYS = {"ok", "max_abs_err", "max_rel_err", "oracle", "seed", "exact"}
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 1, 2))


def small_bert(seed=0):
    return zoo.bert(layers=2, hidden=64, heads=2, sequence=16, vocabulary=500, seed=seed)


def small_mobilenet(classes=10):
    return zoo.mobilenet_v2(width=0.25, size=32, blocks=BLOCKS, classes=classes)


def light(name):
    trained = randomize_weights(onnx.load(LIGHT_FOLDER / f"light_{name}.onnx"), seed=1)
    ends = trained.graph.node[-1].op_type == "Softmax"
    return onnx.shape_inference.infer_shapes(before_softmax(trained)) if ends else trained


# The network, and for how many trials it is tuned; None: every task that matters once.
NETWORKS = {
    "mobilenet_v2": (small_mobilenet, None),
    "bert": (small_bert, None),
    "dcgan": (lambda: zoo.dcgan(latent=16, ngf=8), 8),  # more than tasks: one is searched
    "resnet3d": (lambda: zoo.resnet3d18(frames=4, size=16, width=8, blocks=(1, 1)), 4),
    "squeezenet": (lambda: light("squeezenet"), 0),
    "resnet50": (lambda: light("resnet50"), 0),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a model of the network that most tests are about."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(small_bert(), folder / "bert.onnx")
    return folder


def build(folder, name, *words, registry="registry.db", **options):
    words = ("build", name, "--registry", registry, "--effort", "quick", *words)
    return answer(folder, *words, **options)


def plan(folder, name, words=(), registry="registry.db"):
    return answer(folder, "plan", name, "--registry", registry, "--effort", "quick", *words)


def same_budget(made):
    """A larger one would go on with what that of a build ended."""
    return "--trials", str(made["trials"])


@pytest.fixture(scope="module")
def results(shop):
    """What `build` answered for each network: the build runs when the network is named."""

    class Results(dict):
        def __missing__(self, name):
            make, trials = NETWORKS[name]
            onnx.save(make(), shop / f"{name}.onnx")
            if trials is None:
                trials = plan(shop, f"{name}.onnx")["misses"]
            words = ("-o", f"out/{name}.so", "--trials", trials)
            self[name] = build(shop, f"{name}.onnx", *words)
            return self[name]

    return Results()


@pytest.fixture
def bert(shop, results):
    assert results["bert"]["verify"]["ok"]
    return shop / "out" / "bert.so"


def agrees(library, proto, monkeypatch):
    """The library and ONNX Runtime on inputs that no build has seen."""
    monkeypatch.setenv("TVM_NUM_THREADS", "1")  # restored afterwards: `load` sets it
    loaded = runtime.load(library)
    feeds, expected = Oracle(proto).ask(loaded.inputs, seed=99)
    actual = loaded(**feeds)
    assert all(np.ptp(array) > 0 for array in expected.values())
    assert list(actual) == list(expected)
    assert all(compare(actual[name], expected[name])[0] for name in expected)


# Building


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_builds_and_is_right(name, shop, results, monkeypatch):
    made = results[name]
    assert set(made) == BUILD_KEYS
    assert set(made["verify"]) == VERIFY_KEYS
    assert made["verify"]["ok"]
    assert made["verify"]["max_rel_err"] < 1e-3
    assert (made["artifact"], made["manifest"]) == (f"out/{name}.so", f"out/{name}.json")
    assert made["tasks"] == made["hits"] + made["misses"] + made["skipped"]
    wanted = NETWORKS[name][1]
    assert made["trials"] == (made["misses"] if wanted is None else wanted)
    agrees(shop / made["artifact"], onnx.load(shop / f"{name}.onnx"), monkeypatch)


def test_nothing_but_the_outputs_is_left_behind(shop, results):
    names = {name for made in results.values() for name in made["outputs"]}
    assert {f"out/{name}" for name in everything(shop / "out")} == names


def test_the_manifest_tells_what_was_built(shop, bert):
    manifest = json.loads(bert.with_suffix(".json").read_text())
    host = load_target("host", [shipped("targets")])
    assert manifest["model"]["name"] == "bert.onnx"
    assert len(manifest["model"]["digest"]) == 64
    assert manifest["inputs"] == [{"name": "input_ids", "shape": [1, 16], "dtype": "int64"}]
    output = {"name": "last_hidden_state", "shape": [1, 16, 64], "dtype": "float32"}
    assert manifest["outputs"] == [output]
    assert manifest["target"]["name"] == "host"
    assert manifest["target"]["fingerprint"] == host.fingerprint
    assert manifest["tool"] == ansor_deploy.__version__
    assert manifest["tvm"].startswith("0.27.")
    assert manifest["verify"]["oracle"] == f"onnxruntime {onnxruntime.__version__}"
    assert manifest["artifact"]["bytes"] == bert.stat().st_size


def test_what_was_shipped_and_why_is_in_the_manifest(bert, results):
    manifest, told = json.loads(bert.with_suffix(".json").read_text()), results["bert"]
    speed = manifest["speed"]
    assert {name: told[name] for name in COMPARED} == {
        **{name: speed[name] for name in COMPARED[1:]},
        "shipped": manifest["shipped"],
    }
    is_untuned = speed["verdict"] in ("slower", "same")
    assert manifest["shipped"] == ("untuned" if is_untuned else "tuned")
    assert speed["latency_ms"] == speed[f"{manifest['shipped']}_ms"]
    if speed["verdict"] == "same":  # four trials may find nothing
        assert (speed["interval"], speed["pairs"], speed["tuned_ms"]) == (
            None,
            0,
            speed["untuned_ms"],
        )
    else:
        low, high = speed["interval"]
        assert low <= speed["ratio"] <= high
        assert speed["pairs"] >= LOOKS[0]


def test_the_manifest_names_each_task_s_record_or_default(shop, results, bert):
    tasks = json.loads(bert.with_suffix(".json").read_text())["tasks"]
    rows = answer(shop, "registry", "query", "--registry", "registry.db", "--model", "bert.onnx")
    known = {row["workload"]: row["id"] for row in rows["records"]}
    assert {t["key"]: t["record"] for t in tasks if t["record"] != "default"} == known
    assert len(known) == results["bert"]["misses"]
    assert len(tasks) == results["bert"]["tasks"]
    # Less than the whole: what has no record counts for no more than its share of the rooflines.
    assert 0.5 < sum(task["impact"] for task in tasks) < 1 + 1e-6


# Building again


def test_another_output_of_the_same_model_needs_no_trial(shop, results, bert):
    again = build(shop, "bert.onnx", "-o", "elsewhere/other.so", *same_budget(results["bert"]))
    assert (again["trials"], again["misses"], again["up_to_date"]) == (0, 0, False)
    assert again["hits"] == results["bert"]["misses"]


def test_retrained_weights_need_no_trial_and_make_another_library(shop, results, bert, monkeypatch):
    retrained = small_bert(seed=1)
    onnx.save(retrained, shop / "bert-1.onnx")
    words = ("-o", "elsewhere/bert-1.so", *same_budget(results["bert"]))
    again = build(shop, "bert-1.onnx", *words)
    assert (again["trials"], again["misses"]) == (0, 0)
    assert again["hits"] == results["bert"]["misses"]
    assert (shop / again["artifact"]).read_bytes() != bert.read_bytes()
    agrees(shop / again["artifact"], retrained, monkeypatch)


@pytest.mark.parametrize("name", ["bert", pytest.param("mobilenet_v2", marks=pytest.mark.slow)])
def test_a_model_with_the_same_layers_reports_the_hits(shop, results, name):
    tuned, longer = results[name], graphs.with_product(small_bert(), 64, 10)
    cousin = longer if name == "bert" else small_mobilenet(classes=24)
    onnx.save(cousin, shop / "cousin.onnx")
    again = plan(shop, "cousin.onnx", same_budget(tuned))
    assert tuned["misses"] - 1 <= again["hits"] < tuned["tasks"]
    known = {task["key"] for task in json.loads((shop / tuned["manifest"]).read_text())["tasks"]}
    changed = [row for row in again["tasks"] if row["key"] not in known]
    assert [(row["op"], row["reason"]) for row in changed] == [("matmul", "never tuned")]


def test_an_unchanged_build_does_nothing_and_imports_no_tvm(shop, results, bert):
    before = everything(shop / "out"), bert.stat().st_mtime_ns
    words = ("build", "bert.onnx", "-o", "out/bert.so", "--registry", "registry.db")
    command = [sys.executable, "-X", "importtime", "-m", "ansor_deploy"]
    result = subprocess.run(
        [*command, *words, "--effort", "quick", "--json", *same_budget(results["bert"])],
        cwd=shop, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert json.loads(result.stdout)["up_to_date"]
    assert "ansor_deploy.ship.up_to_date" in imported
    assert not {"tvm", "tvm_ffi", "numpy", "onnx", "onnxruntime"} & imported
    assert (everything(shop / "out"), bert.stat().st_mtime_ns) == before


def test_a_damaged_library_is_built_again(shop, results, bert, tmp_path):
    library = Path(shutil.copy(bert, tmp_path))
    shutil.copy(bert.with_suffix(".json"), tmp_path)
    with library.open("r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        stream.write(b"\xa5" * 8)
    made = build(shop, "bert.onnx", "-o", library, *same_budget(results["bert"]))
    assert (made["up_to_date"], made["trials"]) == (False, 0)
    assert made["verify"]["ok"]


# Running


RUN = """
import json, os, sys
import numpy as np
from ansor_deploy import runtime
if sys.argv[4:]:
    os.sched_setaffinity(0, [int(sys.argv[4])])
before = len(os.listdir("/proc/self/task"))
model = runtime.load(sys.argv[1])
np.savez(sys.argv[3], **model(**np.load(sys.argv[2])))
threads = 1 + len(os.listdir("/proc/self/task")) - before
with open("/proc/self/maps") as maps:
    libraries = {line.split("/")[-1].strip() for line in maps if ".so" in line}
print(json.dumps([threads, sorted(sys.modules), sorted(libraries)]))
"""


def run_apart(library, tmp_path, *processor):
    """(inputs, outputs, threads, modules, libraries) of a process that only runs a library."""
    env = {k: v for k, v in os.environ.items() if k != "TVM_NUM_THREADS"}
    feeds = {"input_ids": np.arange(16, dtype="int64")[None]}
    np.savez(tmp_path / "in.npz", **feeds)
    words = [library, tmp_path / "in.npz", tmp_path / "out.npz", *processor]
    result = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, words)],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return feeds, dict(np.load(tmp_path / "out.npz")), *json.loads(result.stdout)


def test_the_runtime_runs_a_library_without_the_compiler(shop, bert, tmp_path):
    feeds, outputs, _, modules, libraries = run_apart(bert, tmp_path)
    oracle = onnxruntime.InferenceSession(shop / "bert.onnx", providers=["CPUExecutionProvider"])
    (expected,) = oracle.run(None, feeds)
    assert compare(outputs["last_hidden_state"], expected)[0]
    assert not {"tvm", "ansor_deploy._tvm", "onnx"} & set(modules)
    assert "bert.so" in libraries
    assert "libtvm_compiler.so" not in libraries


def test_the_runtime_takes_all_of_the_target_s_cores(bert, tmp_path):
    cores = json.loads(bert.with_suffix(".json").read_text())["target"]["cores"]
    assert run_apart(bert, tmp_path)[2] == min(cores, len(os.sched_getaffinity(0)))


def test_the_runtime_takes_no_more_threads_than_processors(bert, tmp_path):
    assert run_apart(bert, tmp_path, min(os.sched_getaffinity(0)))[2] == 1


def test_run_writes_the_outputs(shop, bert, tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(16, dtype="int64")[None])
    words = ("--input", f"input_ids={tmp_path}/ids.npy", "-o", tmp_path / "out.npz")
    answer(shop, "run", bert, *words)
    _, outputs, *_ = run_apart(bert, tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["last_hidden_state"],
                                  outputs["last_hidden_state"])  # fmt: skip


def test_bench_tells_how_long_a_run_takes(shop, bert):
    figures = answer(shop, "bench", bert, "--time", "0.3s")
    assert figures["runs"] >= 3
    assert 0 < figures["p10_ms"] <= figures["median_ms"] <= figures["p90_ms"]


# Verifying


def test_verify_accepts_the_model_that_was_built(shop, bert):
    verdict = answer(shop, "verify", bert, "bert.onnx", "--seed", "5")
    assert set(verdict) == VERIFY_KEYS | {"wrong", "nodes"}
    assert verdict["ok"]
    assert verdict["seed"] == 5


def test_verify_tells_other_weights_with_6(shop, bert):
    onnx.save(small_bert(seed=2), shop / "bert-2.onnx")
    result = program(shop, "verify", bert, "bert-2.onnx", "--json")
    assert result.returncode == 6
    assert not json.loads(result.stdout)["ok"]


def test_verify_refuses_a_model_with_other_inputs(shop, bert):
    onnx.save(NETWORKS["dcgan"][0](), shop / "dcgan.onnx")
    refused(program(shop, "verify", bert, "dcgan.onnx"), 2, "was not built from", "latent")


# Planning, tuning, querying


def test_a_plan_writes_nothing(shop, tmp_path):
    planned = plan(shop, "bert.onnx", registry=tmp_path / "sub" / "none.db")
    assert planned["hits"] == 0
    assert planned["misses"] > 0
    assert everything(tmp_path) == {}


def test_a_plan_reports_what_the_registry_has(shop, results, bert):
    planned = plan(shop, "bert.onnx", same_budget(results["bert"]))
    assert (planned["hits"], planned["misses"]) == (results["bert"]["misses"], 0)
    hits = [row for row in planned["tasks"] if row["status"] == "hit"]
    assert all(row["record"] for row in hits)


def test_tune_fills_the_registry_for_both_models(tmp_path):
    """One dense layer is in both models, and is tuned once."""
    weights = {"w": randn(0, 48, 64), "v": randn(1, 64, 32)}
    shared = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    deeper = [node("MatMul", "x w", "h"), node("Relu", "h", "r"), node("MatMul", "r v", "y")]
    a = model(shared, {"x": (8, 48)}, constants={"w": weights["w"]})
    b = model(deeper, {"x": (8, 48)}, constants=weights)
    onnx.save(a, tmp_path / "a.onnx")
    onnx.save(b, tmp_path / "b.onnx")
    words = ("--registry", "r.db", "--effort", "quick", "--trials", "2")
    tuned = answer(tmp_path, "tune", "a.onnx", "b.onnx", *words)
    assert (tuned["tasks"], tuned["misses"], tuned["trials"]) == (2, 2, 2)
    with Registry.open(tmp_path / "r.db", write=False) as registry:
        host = load_target("host", [shipped("targets")])
        assert all(one.features for one in registry.measurements(host.fingerprint))
    for name, tasks in (("a", 1), ("b", 2)):
        made = build(tmp_path, f"{name}.onnx", "--trials", "2", registry="r.db")
        assert (made["hits"], made["trials"]) == (tasks, 0)


def test_query_lists_an_operator_s_records(shop, results, bert):
    made = json.loads(bert.with_suffix(".json").read_text())
    tuned = [task for task in made["tasks"] if task["record"] != "default"]
    products = [task["record"] for task in tuned if task["op"] == "matmul"]
    words = ("--registry", "registry.db", "--op", "matmul", "--target", "host")
    rows = answer(shop, "registry", "query", *words)["records"]
    assert 1 < len(products) < len(tuned)
    assert {row["op"] for row in rows} == {"matmul"}
    assert set(products) <= {row["id"] for row in rows}


def test_stats_count_what_was_measured(shop, results, bert):
    stats = answer(shop, "registry", "stats", "--registry", "registry.db")
    assert stats["measurements"] == sum(made["trials"] for made in results.values())
    # Of a task whose search began with another program, the default was run at its end as well.
    searched = sum(one["tasks"] for one in stats["per_target"])
    assert stats["records"] + stats["failures"] <= stats["measurements"] + searched
    assert "bert.onnx" in {row["model"] for row in stats["per_model"]}


def test_a_person_reads_progress_on_stderr_and_the_answer_on_stdout(bert, shop, results):
    words = ("bert.onnx", "-o", "out/bert.so", "--registry", "registry.db", "--effort", "quick")
    result = program(shop, "build", *words, *same_budget(results["bert"]))
    assert result.stdout.startswith("out/bert.so is up to date\nhits     ")
    assert Path(shop / "out/bert.so").exists()
