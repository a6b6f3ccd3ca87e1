"""What a person asks of the registry: one task, one model, and what all of it was good for."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.foreign import bundle
from helpers.registry_samples import TARGET, build, key, measurement, record, workload

from ansor_deploy.registry.record import SearchEnd, TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import take_in
from ansor_deploy.system.digest import sha256

TVM = metadata.version("apache-tvm")
NOON = "2026-01-31T12:00:00+00:00"
DIGESTS = [sha256(name) for name in ("resnet", "mobilenet")]
FAST, STEADY, OLD = (
    record(key(0), 1e-3, tvm=TVM),
    record(key(0), 2e-3, tvm=TVM, created="2026-02-01T12:00:00Z"),
    record(key(0), 5e-4, tvm="0.26.0"),
)


@pytest.fixture
def path(tmp_path):
    """Three tasks, of which the first is tuned and belongs to two models."""
    place = tmp_path / "registry.db"
    with Registry.open(place) as store:
        store.add_target(TARGET)
        store.add_workloads([workload(0), workload(1), workload(2, "matmul")])
        store.add_batch(
            [measurement(key(0)), measurement(key(0), error="crash"), measurement(key(0), 2e-3)],
            [FAST, OLD],
        )
        store.add_contest(STEADY, [FAST.id], NOON)
        store.add_searches([SearchEnd(key(0), TVM, "ansor", 3, "limit", 64, NOON)])
        store.add_model(DIGESTS[0], "resnet.onnx", [(key(0), 4), (key(1), 1)])
        store.add_model(DIGESTS[1], "mobilenet.onnx", [(key(0), 1), (key(2, "matmul"), 2)])
        store.add_tuning(TARGET.fingerprint, "ansor", 10, 20.0, NOON)
    return place


def ask(path, *words):
    return answer(path.parent, "registry", *words, "--registry", path)


def printed(path, *words):
    result = program(path.parent, "registry", *words, "--registry", path)
    assert result.returncode == 0, result.stderr
    return result.stdout


# query --shape


def test_a_shape_may_be_of_any_tensor(path):
    def found(*shapes):
        words = [word for shape in shapes for word in ("--shape", shape)]
        return [row["id"] for row in ask(path, "query", *words)["records"]]

    both = [STEADY.id, OLD.id]
    assert found("64,3,7,7") == found("1x3x224x224") == both
    assert found("64,3,7,7", "1,3,224,224") == found("1,3,224,224", "64,3,7,7") == both
    for other in ("3,224,224", "1,3,224", "1,3,224,2", "3,7", "scalar", "1,3,224,224,64,3,7,7"):
        assert found(other) == []
    assert found("64,3,7,7", "5") == []


def test_what_is_no_shape_is_a_usage_error(path):
    result = program(path.parent, "registry", "query", "--shape", "64,,7", "--registry", path)
    refused(result, 2, "is not a shape; write it like 1,56,56,64")


def test_a_query_lists_what_the_view_has(path):
    with sqlite3.connect(path) as raw:
        view = {row[0] for row in raw.execute("SELECT id FROM best_records")}
    raw.close()
    assert {row["id"] for row in ask(path, "query")["records"]} == view == {STEADY.id, OLD.id}


def test_a_model_may_be_named_without_its_ending(path):
    assert len(ask(path, "query", "--model", "resnet")["records"]) == 2
    assert ask(path, "query", "--model", "res")["records"] == []


# show


def test_the_history_of_a_task(path):
    found = ask(path, "show", key(0).workload[:8])
    assert (found["workload"]["key"], found["record"]) == (key(0).workload, None)
    assert found["workload"]["shapes"] == [[1, 3, 224, 224], [64, 3, 7, 7]]
    records = [(row["id"], row["place"], row["lost"]) for row in found["records"]]
    assert records == [(OLD.id, 1, False), (STEADY.id, 1, False), (FAST.id, 2, True)]
    assert found["records"][1]["provenance"]["device"] == "board-1"
    assert found["contests"] == [{"winner": STEADY.id, "loser": FAST.id, "created": NOON}]
    assert [(row["latency_ms"], row["error"]) for row in found["measurements"]] == [
        (1.0, ""),
        (None, "crash"),
        (2.0, ""),
    ]
    assert (found["trials"], found["failures"]) == (3, 1)
    assert [row["model"] for row in found["models"]] == ["mobilenet.onnx", "resnet.onnx"]
    assert [row["reason"] for row in found["searches"]] == ["limit"]


def test_a_limit_keeps_the_best_records_and_the_newest_measurements(path):
    found = ask(path, "show", key(0).workload, "--limit", 1)
    assert [row["id"] for row in found["records"]] == [OLD.id, STEADY.id]  # of each TVM
    assert [row["latency_ms"] for row in found["measurements"]] == [2.0]
    assert found["trials"] == 3


def test_a_record_leads_to_its_task(path):
    found = ask(path, "show", FAST.id[:10].upper())
    assert (found["record"], found["workload"]["key"]) == (FAST.id, key(0).workload)
    said = printed(path, "show", FAST.id[:10])
    assert f"beaten by {STEADY.id[:12]}, asked for" in said


def test_a_target_that_is_not_meant_is_left_out(path):
    found = ask(path, "show", key(0).workload, "--target", "elsewhere")
    assert found["records"] == found["measurements"] == found["searches"] == []
    assert ask(path, "show", key(0).workload, "--target", "board")["trials"] == 3


def test_a_history_as_tables(path):
    lines = printed(path, "show", key(0).workload[:8]).splitlines()
    assert lines[0] == f"conv2d_0 3x224x224->64x3x7x7 ({key(0).workload[:12]})"
    assert lines[1] == "conv2d_0 1x3x224x224 64x3x7x7 (float32)"
    assert f"x4 in resnet.onnx {DIGESTS[0][:6]} on board" in lines
    assert "3 measurements, 1 failed:" in lines
    assert any("crash: it was a crash" in line for line in lines)
    assert any(line.endswith("limit") for line in lines)
    assert max(map(len, lines)) <= 100
    assert "comparisons" not in printed(path, "show", key(1).workload[:8])


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("xyz", "is no key of a task"),
        ("abc", "is no key of a task"),
        ("0000000000", "has no task and no record 0000000000"),
    ],
)
def test_a_key_of_nothing_is_a_usage_error(path, word, says):
    refused(program(path.parent, "registry", "show", word, "--registry", path), 2, says)


def test_a_key_of_several_is_a_usage_error(path):
    with sqlite3.connect(path) as raw:
        for digit in "01":
            raw.execute(
                "INSERT INTO workloads SELECT 'abcdef' || ?, op, name, family, shapes, dtypes, "
                "flops, bytes, text FROM workloads WHERE name = 'matmul_2' LIMIT 1",
                (digit * 58,),
            )
    raw.close()
    result = program(path.parent, "registry", "show", "abcdef", "--registry", path)
    refused(result, 2, "abcdef may be abcdef0000000000 matmul, abcdef1111111111 matmul")


def test_the_program_of_others_is_not_parsed(tmp_path):
    """Parsing runs it."""
    path, theirs = tmp_path / "registry.db", bundle(64)
    take_in(path, theirs)
    (name,) = theirs.records
    words = ("registry", "show", name, "--script", "--registry", path)
    refused(program(tmp_path, *words), 2, "is not parsed")


def test_a_script_of_a_task_without_a_record_is_a_usage_error(path):
    words = ("registry", "show", key(1).workload, "--script", "--registry", path)
    refused(program(path.parent, *words), 2, "no record made with TVM")


# best


def test_the_best_records_of_a_model(path):
    found = ask(path, "best", "resnet")
    assert (found["model"], found["digest"]) == ("resnet.onnx", DIGESTS[0])
    (part,) = found["targets"]
    tasks = {task["workload"]: task for task in part["tasks"]}
    hit, miss = tasks[key(0).workload], tasks[key(1).workload]
    assert (hit["record"], hit["latency_ms"], hit["weight"]) == (STEADY.id, 2.0, 4)
    # As long, of its roofline, as the other: both are 2 GFLOP.
    assert (miss["record"], miss["latency_ms"]) == (None, pytest.approx(2.0))
    assert part["covered"] == 1
    assert part["latency_ms"] == pytest.approx(8 + 2)
    assert part["share"] == pytest.approx(8 / 10)
    assert [task["workload"] for task in part["tasks"]] == [key(0).workload, key(1).workload]
    for other in ("resnet.onnx", DIGESTS[0][:9]):
        assert ask(path, "best", other) == found
    assert ask(path, "best", "resnet", "--target", TARGET.fingerprint[:6]) == found


def test_coverage_as_a_table(path):
    lines = printed(path, "best", "resnet", "--target", "board").splitlines()
    names = [key(1).workload[:6], "conv2d_1", "3x224x224->64.."]
    assert lines[1].split()[-2:] == [STEADY.id[:12], "2026-02-01"]
    assert lines[2].split()[:7] == [*names, "x1", "20.0%", "~2.00", "ms"]
    summary = "on board: 1 of 2 tasks have a record, with 80.0% of the time; "
    alone = "tasks alone add up to about 10.0 ms"
    assert lines[3] == f"resnet.onnx {DIGESTS[0][:6]} {summary}{alone}"


def test_a_model_that_nobody_built_is_a_usage_error(path):
    def best(*words):
        return program(path.parent, "registry", "best", *words, "--registry", path)

    refused(best("vgg"), 2, "knows no model vgg", "it knows mobilenet.onnx, resnet.onnx")
    refused(best("resnet", "--target", "v100"), 2, "ansor-deploy build resnet.onnx --target v100")
    with Registry.open(path) as store:
        store.add_model("ab" * 32, "resnet.onnx", [])
    refused(best("resnet"), 2, "resnet may be", "abababababab", "name it by its digest")


# stats


def test_what_the_registry_saved(path):
    stats = ask(path, "stats")
    # Three trials of the shared task, made once for two models, at two seconds each.
    assert stats["trials_saved"] == 3
    (target,) = stats["per_target"]
    assert (target["trials_saved"], target["seconds_saved"]) == (3, 6.0)
    mobilenet, resnet = stats["per_model"]
    assert (resnet["layers"], resnet["tasks"], resnet["shared"], resnet["covered"]) == (5, 2, 1, 1)
    assert [row["trials_saved"] for row in (mobilenet, resnet)] == [1.5, 1.5]
    assert [row["seconds_saved"] for row in (mobilenet, resnet)] == [3.0, 3.0]
    assert "3 trials saved, about 6.0 s: models share what" in printed(path, "stats")


def test_what_was_measured_elsewhere_is_saved(path):
    with Registry.open(path) as store:
        store.add_searches([SearchEnd(key(1), TVM, "ansor", 50, "limit", 64, NOON)])
    stats = ask(path, "stats")
    assert stats["trials_saved"] == 3 + 50
    assert [row["trials_saved"] for row in stats["per_model"]] == [1.5, 51.5]


def test_a_search_that_went_on_is_counted_once(path):
    with Registry.open(path) as store:  # an end says how many trials there were by then
        ends = [SearchEnd(key(0), TVM, "ansor", trials, "limit", 64, NOON) for trials in (2, 3)]
        store.add_searches(ends)
    assert ask(path, "stats")["trials_saved"] == 3


# names that two targets have


def test_targets_of_one_name_are_told_apart(path):
    twin = replace(TARGET, cores=2)
    theirs = replace(FAST, key=TaskKey(key(0).workload, twin.fingerprint))
    with Registry.open(path) as store:
        store.add_target(twin)
        store.add_batch([], [theirs])
        store.add_model(DIGESTS[1], "mobilenet.onnx", [(theirs.key, 1)])
        store.add_build(build("/m.so", DIGESTS[0], NOON))
    board, other = (f"board {one.fingerprint[:6]}" for one in (TARGET, twin))
    for words in (("query",), ("show", key(0).workload), ("best", "mobilenet"), ("stats",)):
        said = printed(path, *words)
        assert board in said
        assert other in said
    assert f"{twin.fingerprint[:6]}       cortex-a53 x2" in printed(path, "stats")
    assert board in program(path.parent, "history", "resnet", "--registry", path).stdout
    refused(
        program(path.parent, "registry", "show", key(0).workload, "--script", "--registry", path),
        2,
        f"the task was tuned for {', '.join(sorted([board, other]))}",
        "choose one with --target",
    )


# trends


def saved(path):
    weeks = ask(path, "trends")["weeks"]
    return {week["week"]: (week["trials_saved"], week["seconds_saved"]) for week in weeks}


def test_trials_are_saved_in_the_week_in_which_a_model_comes(path):
    with Registry.open(path) as store:
        store.add_build(build("/a.so", DIGESTS[0], "2026-02-01T23:00:00+00:00"))  # a Sunday
        store.add_build(build("/b.so", DIGESTS[1], "2026-02-02T00:00:00+00:00", hits=1, misses=1))
        store.add_build(build("/b.so", DIGESTS[1], "2026-02-12T12:00:00+00:00", hits=2, misses=0))
    # Resnet has tuned the task that mobilenet finds: three trials, at two seconds each.
    assert saved(path) == {"2026-02-09": (0, 0), "2026-02-02": (3, 6.0), "2026-01-26": (0, 0)}
    newest, _, first = ask(path, "trends")["weeks"]
    assert (newest["builds"], newest["tasks"], newest["known"]) == (1, 2, 2)
    assert (first["builds"], first["trials"], first["seconds"]) == (1, 10, 20.0)
    (line,) = printed(path, "trends", "--limit", "1").splitlines()[1:]
    assert line.split() == ["2026-02-09", "1", "2", "2", "0", "0.0", "s", "0"]


def test_weeks_add_up_to_what_the_registry_saved(path):
    elsewhere = SearchEnd(key(1), TVM, "ansor", 50, "limit", 64, "2026-02-20T12:00:00Z")
    with Registry.open(path) as store:
        store.add_searches([elsewhere])
    # Never built: resnet came when the last of its tasks was searched, by others.
    assert saved(path) == {"2026-02-16": (53, 106.0), "2026-01-26": (0, 0)}
    assert ask(path, "stats")["trials_saved"] == 53


def test_an_empty_registry_has_no_weeks(tmp_path):
    with Registry.open(tmp_path / "registry.db"):
        pass
    assert printed(tmp_path / "registry.db", "trends") == "nothing was built or tuned with it\n"


def test_a_lookup_loads_no_compiler(path):
    script = (
        "import sys\nfrom ansor_deploy.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    heavy = {"tvm", "numpy", "onnx", "onnxruntime", "rich", "xgboost", "sqlite_utils"}
    for words in (
        ("show", key(0).workload),
        ("best", "resnet"),
        ("stats",),
        ("trends",),
        ("query",),
    ):
        command = [sys.executable, "-c", script, "registry", *words, "--registry", str(path)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert heavy.isdisjoint(result.stderr.split()), words
