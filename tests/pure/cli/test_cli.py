"""The command line: help, options, exit codes and what is written where."""

import json
import os
import subprocess
import sys
import types
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ansor_deploy import cli, pipeline
from ansor_deploy.cli.requests import make_budget
from ansor_deploy.cli.values import parse_duration, parse_share, parse_size
from ansor_deploy.errors import VerificationError
from ansor_deploy.project import Project
from ansor_deploy.registry.record import Provenance, Record, TaskKey, Workload
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import EFFORTS, Outputs
from ansor_deploy.runtime import Interface
from ansor_deploy.runtime.profile import KernelTime, Profile
from ansor_deploy.ship import library
from ansor_deploy.ship.race import timing
from ansor_deploy.ship.verify import finished
from ansor_deploy.ship.verify.verify import Verification
from ansor_deploy.target import load_target
from ansor_deploy.tune.plan import Plan

PROGRAM = [sys.executable, "-m", "ansor_deploy"]
ROOT = Path(__file__).resolve().parents[3]


def invoke(*words):
    return CliRunner().invoke(cli.main, words)


def program(*words, **options):
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, check=False, cwd=ROOT, **options
    )


def commands(group, words=()):
    """Every command with the words that name it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


# Help and usage


@pytest.mark.parametrize("words", list(commands(cli.main)), ids=" ".join)
def test_every_help_has_examples(words):
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert "Examples:\n    ansor-deploy " + words[0] in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_every_command_can_be_quiet():
    told = {words: invoke(*words, "--help").stdout for words in commands(cli.main)}
    loud = {words for words in told if "-q, --qu" not in told[words]}
    assert loud == {(name,) for name in ("devices", "lock", "registry", "rules", "targets")}


def test_the_list_of_commands_has_the_line_of_each():
    for name, line in cli.COMMANDS.items():
        assert cli.main.get_command(click.Context(cli.main), name).get_short_help_str(79) == line


@pytest.mark.parametrize("words", [(), ("registry",), ("devices",), ("rules",), ("lock",)])
def test_short_help_is_not_cut(words):
    assert "..." not in invoke(*words, "--help").stdout.partition("Commands:")[2]


def test_help_has_examples_first_and_options_in_groups():
    said = invoke("build", "--help").stdout
    heads = ["Examples:", "Model and target:", "Tuning:", "Devices:", "Records:", "Output:"]
    places = [said.index(f"\n{head}\n".replace("\nE", "\n  E")) for head in heads]
    assert places == sorted(places)
    assert said.index("  --effort [") > said.index("Tuning:")
    assert said.index("  -h, --help") > said.index("Other options:")
    assert "Tuning:" not in invoke("registry", "gc", "--help").stdout


def test_help_names_every_exit_code():
    assert all(f" {code} " in invoke("--help").stdout for code in (*range(10), 70))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bild"], "Did you mean 'build'?"),
        (["build"], "Missing argument 'MODEL'"),
        (["--nonsense"], "No such option"),
        (["targets", "list", "--nonsense"], "see ansor-deploy targets list --help"),
        (["bench", __file__, "--time"], "see ansor-deploy bench --help"),
        (["build", "no.onnx"], "there is no file no.onnx"),
        (["build", __file__, "--time", "10"], "write it like 90s, 10m or 1h30m"),
        (["build", __file__, "--effort", "heroic"], "'quick', 'normal', 'thorough'"),
        (["build", __file__, "--input-shape", "1,2"], "write it like data=1,3,224,224"),
        (["build", __file__, "--target", "no-such"], "there is no target 'no-such'"),
        (["registry", "query", "--since", "yesterday"], "write it like 2026-01-31 or 7d"),
    ],
)
def test_wrong_words_exit_2(words, says):
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("ansor-deploy: error: ")
    assert says in result.stderr
    assert result.stdout == ""


def test_wrong_words_as_json():
    result = invoke("build", "no.onnx", "--json")
    error = json.loads(result.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == ("usage", 2)
    assert set(error) == {"kind", "message", "hint", "exit_code", "file", "line"}


# Options' values


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("0.5h", 1800), ("1H", 3600)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "-5s", "5s10m", "1d", "0s", "nan s"])
def test_no_durations(text):
    with pytest.raises(click.BadParameter):
        parse_duration(text)


@pytest.mark.parametrize(("text", "share"), [("0.01", 0.01), ("1%", 0.01), ("0", 0), ("100%", 1)])
def test_shares(text, share):
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "1.5", "-1%", "nan", "a lot"])
def test_no_shares(text):
    with pytest.raises(click.BadParameter):
        parse_share(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("20MB", 20_000_000), ("1.5 GiB", 3 << 29), ("7kB", 7000), ("1b", 1), ("2KiB", 2048)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "20", "20 M", "-1MB", "0MB", "1TB", "1 e3MB"])
def test_no_sizes(text):
    with pytest.raises(click.BadParameter):
        parse_size(text)


def test_budgets():
    assert make_budget("normal", None, None, None) == EFFORTS["normal"]
    budget = make_budget("quick", 100, 60.0, 0.5)
    assert (budget.trials, budget.seconds, budget.per_task, budget.min_impact) == (100, 60, 16, 0.5)


# What reaches the engine


def test_build_passes_a_request(model, monkeypatch):
    seen = []

    def build(*arguments):
        seen.extend(arguments)
        sys.stdout.write("noise of a library\n")
        os.write(1, b"noise of a compiler\n")
        done = {"up_to_date": True, "artifact": "net.so", "verified": True}
        done["tuned"] = types.SimpleNamespace(origins=None)
        done["manifest"] = types.SimpleNamespace(labels={})
        return types.SimpleNamespace(**done, answer=None)

    monkeypatch.setattr(pipeline, "build", build)
    words = ["--trials", "7", "--input-shape", "x=1,2", "--seed", "3", "--registry", "r.db"]
    words += ["--retune", "dense", "--retune", "3fa9c0"]
    result = invoke("build", "net.onnx", *words)
    assert result.exit_code == 0, result.output
    path, outputs, request, _ = seen
    assert (path, outputs) == (Path("net.onnx"), Outputs(Path("net.so")))
    assert (request.target.name, request.registry, request.seed) == ("host", Path("r.db"), 3)
    assert (request.input_shapes, request.budget.trials) == (({"x": (1, 2)},), 7)
    assert request.retune == ("dense", "3fa9c0")


@pytest.mark.parametrize(
    ("taken", "code", "says"),
    [
        ([1.0, 6.0], 7, "net.so takes 6.00 ms a run, its goal is 5.00 ms"),
        ([4.0], 0, ""),
        (None, 7, "whether net.so meets its goal is not known: it was not run"),
    ],
)
def test_build_exits_7_where_the_goal_is_missed(model, monkeypatch, taken, code, says):
    speed = None if taken is None else types.SimpleNamespace(shapes_ms=taken)
    result = types.SimpleNamespace(
        artifact="net.so",
        manifest=types.SimpleNamespace(speed=speed, labels={}),
        verified=True,
        up_to_date=False,
        answer=None,
    )
    goals = []
    monkeypatch.setattr(
        pipeline, "build", lambda *given: goals.append(given[2].objective.goals) or result
    )
    found = invoke("build", "net.onnx", "--goal", "5ms")
    assert found.exit_code == code, found.output
    assert says in found.stderr
    assert goals == [(5e-3,)]
    assert "write it like 5ms" in invoke("build", "net.onnx", "--goal", "5").stderr


def test_the_project_chooses_target_and_registry(model, monkeypatch):
    seen = []
    monkeypatch.setattr(pipeline, "plan", lambda *given: seen.append(given) or empty_plan())
    (model.parent / "ansor-deploy.toml").write_text('target = "rpi3"\nregistry = "team.db"\n')
    assert invoke("plan", "net.onnx").exit_code == 0
    request = seen[0][1]
    assert (request.target.name, request.registry) == ("rpi3", model.parent / "team.db")


def empty_plan():
    return Plan(("net",), "rpi3", (), 0, 0.0)


def test_plan_prints_to_stdout(model, monkeypatch):
    monkeypatch.setattr(pipeline, "plan", lambda *_: empty_plan())
    assert "0 tasks of net on rpi3" in invoke("plan", "net.onnx").stdout
    assert json.loads(invoke("plan", "net.onnx", "--json").stdout)["hits"] == 0


def test_profile_prints_kernels_operators_and_the_rest(model, monkeypatch, tmp_path):
    task = {"key": "0" * 64, "op": "add", "title": "add 8", "record": "default"}
    task |= {"flops": 2e6, "bytes": 4e6}
    kernels = (
        KernelTime("kernel_a", "add", 2e-3, ((1, 8), (1, 8)), task),
        KernelTime("kernel_b", "compute", 1e-3, (), None),
    )
    target = replace(load_target("intel-cpu-avx2", Project().target_path()), peak_gflops=2.0)
    timed = [(Interface((), ()), Profile(4e-3, kernels))]
    monkeypatch.setattr(timing, "profile", lambda *_: timed)
    opened = nullcontext(types.SimpleNamespace(manifest={"target": target.to_json()}))
    monkeypatch.setattr(library, "opened", lambda *_: opened)
    trace = tmp_path / "trace.json"
    rows = [line.split() for line in invoke("profile", "net.onnx").stdout.splitlines()]
    assert rows[1] == ["000000", "add", "8", "2.00", "ms", "50.0%", "1.0", "2.0", "50%"]
    assert rows[2] == ["compute", "1.00", "ms", "25.0%"]
    assert rows[3] == ["the", "rest", "1.00", "ms", "25.0%"]
    assert rows[5][:3] == ["room:", "1.00", "ms"]
    assert rows[8:] == [["add", "2.00", "ms", "50.0%", "1.0"], ["compute", "1.00", "ms", "25.0%"]]
    found = json.loads(invoke("profile", "net.onnx", "--json", "--trace", str(trace)).stdout)
    assert found["rest_ms"] == pytest.approx(1.0)
    assert [one["record"] for one in found["kernels"]] == ["default", None]
    assert [one["op"] for one in found["kernels"]] == ["add", "compute"]
    spans = [one for one in json.loads(trace.read_text())["traceEvents"] if one["ph"] == "X"]
    times = [(one["name"], one["ts"], one["dur"]) for one in spans]
    assert times == [("add 8", 0.0, 2000.0), ("compute", 2000.0, 1000.0)]


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, VerificationError.exit_code)])
def test_verify_exits_by_the_result(model, monkeypatch, ok, code):
    found = Verification(ok, 0.5, float("inf"), "ONNX Runtime", 0)
    monkeypatch.setattr(finished, "verify", lambda *_: found)
    result = invoke("verify", "net.onnx", "net.onnx", "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout)["max_rel_err"] is None
    assert invoke("verify", "net.onnx", "net.onnx").exit_code == code


def test_json_is_all_that_reaches_stdout():
    code = (
        "import os\nfrom ansor_deploy.cli.output import print_json, stdout_kept_clean\n"
        "with stdout_kept_clean():\n"
        "    print('python'); os.write(1, b'fd'); os.system('echo child')\n"
        "print_json({'answer': float('nan')})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == {"answer": None}
    assert all(word in result.stderr for word in ("python", "fd", "child"))


# A program as a user starts it


def test_version():
    assert program("--version").stdout.startswith("ansor-deploy 0.")


QUICK = [["--help"], ["build", "--help"], ["targets", "list"], ["registry", "query"]]


@pytest.fixture
def registry():
    """The user's registry exists; making one may load more than reading one."""
    with Registry.open(Project().registry_path(), write=True):
        pass


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_starting_loads_little(words):
    script = (
        "import sys\nfrom ansor_deploy.cli import main\n"
        f"try: main({words!r})\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    heavy = {"tvm", "numpy", "onnx", "onnxruntime", "rich", "xgboost"}
    unused = {"msgspec"} if words == ["--help"] else set()
    assert (heavy | unused).isdisjoint(result.stderr.split())


def test_targets():
    found = json.loads(invoke("targets", "list", "--json").stdout)["targets"]
    names = [row["name"] for row in found]
    assert {"host", "rpi3"} <= set(names)
    assert "rpi3              Raspberry Pi 3 Model B" in invoke("targets", "list").stdout
    assert "cortex-a53" in invoke("targets", "show", "rpi3").stdout
    assert json.loads(invoke("targets", "show", "host", "--json").stdout)["cores"] >= 1


NO_RECORDS = "no records match; what there is: ansor-deploy registry stats\n"


def test_an_empty_registry(tmp_path):
    where = ["--registry", str(tmp_path / "r.db")]
    assert invoke("registry", "query", *where).stdout == NO_RECORDS
    assert "there is no registry" in invoke("registry", "query", *where).stderr
    assert json.loads(invoke("registry", "query", *where, "--json").stdout) == {"records": []}
    assert json.loads(invoke("registry", "stats", *where, "--json").stdout)["records"] == 0
    assert not (tmp_path / "r.db").exists()


def test_registry_query_and_stats_as_tables(tmp_path):
    fill(path := tmp_path / "r.db")
    where = ["--registry", str(path)]
    query = ["registry", "query", *where]
    lines = invoke(*query).stdout.splitlines()
    assert lines[0].split() == ["key", "task", "latency", "trials", "target", "made"]
    assert lines[1].split() == ["aaaaaa", "dense", "8x16", "2.00", "ms", "0", "host", "2026-01-31"]
    assert {invoke(*query, "--since", day).stdout for day in ("2026-02-01", "1d")} == {NO_RECORDS}
    said = invoke("registry", "stats", *where).stdout
    assert "records       1" in said
    assert "fingerprint" in said


def fill(path):
    """One record of one task."""
    target = load_target("host", Project().target_path())
    key = TaskKey("a" * 64, target.fingerprint)
    shapes, dtypes = ((8, 8), (8, 16)), ("float32", "float32")
    workload = Workload(key.workload, "", "matmul", "dense", "", shapes, dtypes, 1.0, 1.0)
    made = Provenance("0.1", "0.27", "metaschedule", "host", 0, "2026-01-31T00:00:00Z")
    with Registry.open(path, write=True) as store:
        store.add_target(target)
        store.add_workloads([workload])
        store.add_batch([], [Record(key, "[]", (2e-3,), {}, made)])


def test_registry_verify_distinguishes_a_whole_file_from_a_damaged_one(tmp_path):
    path = tmp_path / "r.db"
    Registry.open(path).close()
    words = ["registry", "verify", "--registry", str(path)]
    assert invoke(*words).exit_code == 0
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    assert invoke(*words).exit_code == 8
