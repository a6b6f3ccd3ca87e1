"""One library for several shapes: built, checked, timed, and chosen by what is given."""

import json
from collections import Counter
from html import escape

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime import load
from ansor_deploy.ship.verify.tolerance import compare

SHAPES = ((1, 3, 8, 8), (16, 3, 8, 8), (2, 3, 12, 8))
WORDS = [word for s in SHAPES for word in ("--input-shape", f"x={','.join(map(str, s))}")]
BUILD = ("build", "net.onnx", "--trials", 0)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a network, a library of several shapes, and one of the first alone."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(graphs.batches(), folder / "net.onnx")
    answer(folder, *BUILD, *WORDS, "-o", "net.so", "--lock", "net.lock")
    answer(folder, *BUILD, *WORDS[:2], "-o", "one.so")
    return folder


@pytest.fixture(scope="module")
def manifest(shop):
    return json.loads((shop / "net.json").read_text())


def test_what_is_given_decides(shop):
    model = load(shop / "net.so")
    for shape in (*SHAPES, *reversed(SHAPES)):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        have, (want,) = model(x=x)["y"], graphs.run(graphs.batches(), {"x": x})
        assert compare(have, want)[0]


def test_what_fits_none_is_refused_with_what_there_is(shop):
    with pytest.raises(UsageError) as caught:
        load(shop / "net.so")(x=np.zeros((4, 3, 8, 8), np.float32))
    assert "x: float32[4, 3, 8, 8] given" in caught.value.text
    texts = [f"x: float32[{', '.join(map(str, shape))}]" for shape in SHAPES]
    assert caught.value.hint == f"it takes {'; or '.join(texts)}"


def test_the_manifest_lists_the_shapes(manifest):
    assert [tuple(one["inputs"][0]["shape"]) for one in manifest["variants"]] == list(SHAPES)
    assert [one["outputs"][0]["shape"][0] for one in manifest["variants"]] == [1, 16, 2]
    assert manifest["inputs"] == manifest["variants"][0]["inputs"]
    assert manifest["model"]["input_shapes"] == [{"x": list(shape)} for shape in SHAPES]


def test_shapes_share_weights(shop, manifest):
    """Those that are packed for both in one way: two of three here."""
    alone = json.loads((shop / "one.json").read_text())["memory"]["weights"]
    assert alone <= manifest["memory"]["weights"] < len(SHAPES) * alone


def test_tasks_of_all_shapes_are_planned_together(shop):
    tasks = answer(shop, "plan", "net.onnx", *WORDS)["tasks"]
    assert sum(task["op"] == "conv2d" for task in tasks) == len(SHAPES)


def test_verify_bench_and_run_know_the_shapes(shop):
    assert answer(shop, "verify", "net.so", "net.onnx")["ok"]
    timed = answer(shop, "bench", "net.so", "--time", "0.1s")["variants"]
    assert [tuple(one["inputs"]["x"]) for one in timed] == list(SHAPES)
    np.save(shop / "x.npy", np.zeros(SHAPES[1], np.float32))
    (y,) = answer(shop, "run", "net.so", "--input", "x=x.npy")["outputs"]
    assert y["shape"] == [16, 256]
    np.save(shop / "x.npy", np.zeros((5, 3, 8, 8), np.float32))
    refused(program(shop, "run", "net.so", "--input", "x=x.npy"), 2, "do not fit", "float32[16, 3")


def test_bench_beside_another_engine_takes_the_model_that_was_built(shop, tmp_path):
    words = ("bench", "net.so", "--time", "0.1s", "--threads", "1", "--beside", "onnxruntime")
    raced = answer(shop, *words)["variants"]
    assert [one["beside"][0]["peer"][:13] for one in raced] == ["ONNX Runtime "] * len(SHAPES)
    changed, net = tmp_path / "net.onnx", graphs.batches()
    net.doc_string = "another"
    onnx.save(net, changed)
    refused(program(shop, *words, changed), 2, "was not built from", "as it is now")


def test_copies_are_timed_side_by_side_in_each_shape(shop):
    words = ("bench", "net.so", "--time", "0.2s", "--streams", "2")
    timed = answer(shop, *words)["variants"]
    assert [tuple(one["inputs"]["x"]) for one in timed] == list(SHAPES)
    assert all(one["runs"] >= 2 for one in timed)
    refused(program(shop, *words, "--beside", "onnxruntime"), 2, "one copy", "--streams")


def test_a_report_is_a_page_of_its_own(shop):
    found = answer(shop, "report", "net.so", "--time", "0.1s")
    text = (shop / found["report"]).read_text()
    assert found["report"] == "net.report.html"
    titles = [escape(one["title"]) for one in found["profile"]["kernels"] if one["title"]]
    assert len(titles) > 1
    assert all(title in text for title in titles)
    answer(shop, "report", "net.so", "-o", "net.md", "--time", "0.1s")
    assert (shop / "net.md").read_text().startswith("## net.onnx on host")


def test_a_build_writes_its_report_where_there_is_none(shop):
    words = (*BUILD, *WORDS[:2], "-o", "one.so", "--report", "one.html")
    assert answer(shop, *words)["up_to_date"]
    page = shop / "one.html"
    assert "<h1>net.onnx on host</h1>" in page.read_text()
    page.write_text("as it was")
    assert answer(shop, *words)["up_to_date"]
    assert page.read_text() == "as it was"


def test_libraries_of_a_model_are_compared(shop):
    found = answer(shop, "compare", "one.so", "net.so", "--time", "0.2s", "-o", "net.html")
    assert "one.so → net.so" in (shop / "net.html").read_text()
    assert found["beside"]["peer"] == "one.so"
    assert {task["what"] for task in found["tasks"]} == {"same", "new"}
    assert all(task["before_ms"] > 0 for task in found["tasks"] if task["what"] == "same")
    assert found["bytes"]["library"][0] < found["bytes"]["library"][1]


def test_a_library_beside_itself_is_not_timed(shop):
    found = answer(shop, "compare", "net.so", "net.so", "--fail-if-slower", "0%")
    assert (found["same"], found["beside"], found["failed"]) == (True, None, False)
    compared = program(shop, "compare", "net.so", "net.so").stdout
    assert compared == "not timed: they are the same, byte by byte\n"


def test_a_profile_names_the_tasks_of_each_shape(shop, manifest):
    profiles = answer(shop, "profile", "net.so", "--time", "0.1s")["variants"]
    assert [tuple(one["inputs"]["x"]) for one in profiles] == list(SHAPES)
    kernels = [kernel for one in profiles for kernel in one["kernels"]]
    calls = Counter(kernel["key"] for kernel in kernels if kernel["key"])
    assert calls == {task["key"]: task["weight"] for task in manifest["tasks"]}
    assert {kernel["record"] for kernel in kernels} - {None} == {"default"}
    for one in profiles:
        named = [node["name"] for kernel in one["kernels"] for node in kernel["nodes"]]
        assert named[:2] == ["c", "r"]
        assert named[-1] == "y"
    assert "Conv c, Relu r" in program(shop, "profile", "net.so", "--time", "0.1s", "-v").stdout
    for one in profiles:
        assert sum(k["ms"] for k in one["kernels"]) == pytest.approx(
            one["latency_ms"] - one["rest_ms"]
        )


def test_a_profile_beside_onnx_runtime_is_of_groups_of_nodes(shop):
    words = ("profile", "net.so", "net.onnx", "--time", "0.1s", "--beside", "onnxruntime")
    for one in answer(shop, *words)["variants"]:
        assert one["beside"]["peer"].startswith("ONNX Runtime ")
        (first,) = [group for group in one["beside"]["groups"] if "c" in group["nodes"]]
        assert first["nodes"] == ["c", "r"]
        assert first["kernels"]
        assert first["parts"]
        assert min(first["ours_ms"], first["theirs_ms"], first["ratio"]) > 0
    assert "with its profiler on" in program(shop, *words).stdout


def test_it_is_up_to_date_for_these_shapes_only(shop):
    frozen = (*BUILD, "--lock", "net.lock", "--frozen", "-o", "frozen.so")
    assert not answer(shop, *frozen, *WORDS)["up_to_date"]
    assert answer(shop, *frozen, *WORDS)["up_to_date"]
    rebuilt = ("verify", "frozen.so", "net.onnx", "--rebuild", "--lock", "net.lock")
    assert answer(shop, *rebuilt)["ok"]
    assert not answer(shop, *frozen, *WORDS[:4])["up_to_date"]
