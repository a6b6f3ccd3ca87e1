"""What a build tool relies on: what is made anew and what not, told by contents alone."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata

import onnx
import pytest
from helpers import foreign
from helpers.cli_inside import answer, program
from helpers.cli_process import everything, heed_permissions, refused
from helpers.graphs import model, node, randn

from ansor_deploy.registry.lock_text import read_lock, write_lock
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.ship.outputs.depfile import escaped
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

# Processes of a user's own make the same bytes.
pytestmark = pytest.mark.optimised

HOST = load_target("host", [shipped("targets")])
TVM = metadata.version("apache-tvm")
FROZEN = ("--lock", "records.lock", "--frozen", "-o", "net.so", "--depfile", "net.d")
OUTPUTS = ("net.so", "net.intoto.json", "net.json")

RULE = '''
"""The loops stay as they are, in parts of PARTS."""

from ansor_deploy.space import ApplyAndSkipRest

NAME = "in-parts"
KINDS = ("llvm",)


def applies(state, block, target):
    return ApplyAndSkipRest()


def apply(state, block, target):
    loop = state.sch.get_loops(state.block(block))[-1]
    state.sch.split(loop, [None, PARTS])
    state.done.add(block)
    return [state]
'''


def net(seed=0):
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    return model(nodes, {"x": (4, 32)}, constants={"w": randn(seed, 32, 16)})


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a model, and a lock that gives its tasks the default schedules."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(net(), folder / "net.onnx")
    tasks = answer(folder, "plan", "net.onnx", "--registry", "r.db")["tasks"]
    write_lock(folder / "records.lock", HOST, TVM, [], [task["key"] for task in tasks])
    assert not built(folder)["up_to_date"]
    return folder


@pytest.fixture
def folder(shop, tmp_path):
    """A copy of the shop, its outputs made an hour ago."""
    for path in shop.iterdir():
        shutil.copy(path, tmp_path)
    for name in OUTPUTS:
        os.utime(tmp_path / name, (1, 1))
    return tmp_path


def built(folder, *words, **options):
    return answer(folder, "build", "net.onnx", *FROZEN, *words, **options)


def touched(folder):
    return [name for name in OUTPUTS if (folder / name).stat().st_mtime > 1]


def other_record(seconds):
    """Of a program that the model does not have."""
    made = foreign.record(64, seconds)
    return dataclasses.replace(made, key=TaskKey(made.key.workload, HOST.fingerprint))


def test_nothing_changed(folder):
    assert built(folder)["up_to_date"]
    assert touched(folder) == []


def test_the_same_bytes_at_another_time_change_nothing(folder):
    for name in ("net.onnx", "records.lock"):
        os.utime(folder / name)
    assert built(folder)["up_to_date"]
    assert touched(folder) == []


def test_what_the_lock_says_of_others_changes_nothing(folder):
    lock = read_lock(folder / "records.lock", HOST, TVM)
    for seconds in (1e-3, 2e-3):
        write_lock(folder / "records.lock", HOST, TVM, [other_record(seconds)], lock.defaults)
        assert built(folder)["up_to_date"]
    assert touched(folder) == []


def test_a_task_that_the_lock_has_lost_is_missed(folder):
    write_lock(folder / "records.lock", HOST, TVM, [], [])
    result = program(folder, "build", "net.onnx", *FROZEN)
    refused(result, 5, "records.lock: error: it lacks", "ansor-deploy tune net.onnx --lock")
    (folder / "records.lock").unlink()
    result = program(folder, "build", "net.onnx", *FROZEN)
    refused(result, 5, "records.lock: error: there is no such lock")
    assert touched(folder) == []


def test_other_weights_make_another_library(folder):
    onnx.save(net(seed=1), folder / "net.onnx")
    assert not built(folder)["up_to_date"]
    assert touched(folder) == list(OUTPUTS)


def test_a_rule_reaches_what_nobody_tuned(folder):
    rule = folder / "rule.py"
    rule.write_text(RULE.replace("PARTS", "2"))
    before = (folder / "net.so").read_bytes()
    assert not built(folder, "--rules", "rule.py")["up_to_date"]
    assert (folder / "net.so").read_bytes() != before
    assert "net.so: net.onnx records.lock " in (folder / "net.d").read_text()
    assert "\nrule.py:\n" in (folder / "net.d").read_text()
    assert built(folder, "--rules", "rule.py")["up_to_date"]
    before = (folder / "net.so").read_bytes()
    rule.write_text(RULE.replace("PARTS", "4"))
    assert not built(folder, "--rules", "rule.py")["up_to_date"]
    assert (folder / "net.so").read_bytes() != before


def test_a_project_s_rules_count_as_well(folder):
    (folder / "ansor-deploy.toml").touch()
    (folder / "rules").mkdir()
    assert built(folder)["up_to_date"]
    (folder / "rules" / "parts.py").write_text(RULE.replace("PARTS", "2"))
    assert not built(folder)["up_to_date"]
    manifest = json.loads((folder / "net.json").read_text())
    assert [one["file"] for one in manifest["rules"]] == ["parts.py"]
    depends = (folder / "net.d").read_text()
    assert f"\n{folder}/ansor-deploy.toml:\n{folder}/rules/parts.py:\n" in depends


def test_a_broken_rule_is_left_out_with_a_warning(folder):
    (folder / "rule.py").write_text(RULE.replace("PARTS", "nonsense"))
    words = ("build", "net.onnx", *FROZEN, "--rules", "rule.py", "--message-format", "json")
    result = program(folder, *words)
    assert result.returncode == 0
    told = [json.loads(line) for line in result.stderr.splitlines()]
    assert {one["level"] for one in told} == {"warning"}
    assert "in-parts raised NameError" in told[0]["message"]


def test_a_target_s_words_are_in_the_manifest_and_count(folder):
    (folder / "ansor-deploy.toml").touch()
    (folder / "targets").mkdir()
    board = folder / "targets" / "board.toml"
    for comment, unchanged in (("", False), ("# the same", True), ("cores = 1", False)):
        board.write_text(f'extends = "host"\n{comment}\n')
        if comment.startswith("cores"):
            lock = read_lock(folder / "records.lock", HOST, TVM)
            one = dataclasses.replace(HOST, cores=1)
            write_lock(folder / "records.lock", one, TVM, [], lock.defaults)
        assert built(folder, "--target", "board")["up_to_date"] == unchanged
    names = [line.rstrip(":") for line in (folder / "net.d").read_text().splitlines()]
    assert {str(board), str(shipped("targets") / "host.toml")} <= set(names)


def test_touch_makes_what_is_up_to_date_new(folder):
    assert built(folder, "--touch")["up_to_date"]
    assert touched(folder) == list(OUTPUTS)


def test_a_lost_depfile_is_written_again(folder):
    before = (folder / "net.d").read_text()
    (folder / "net.d").unlink()
    assert built(folder)["up_to_date"]
    assert (folder / "net.d").read_text() == before


def test_continuous_integration_freezes_what_has_a_lock(folder, monkeypatch):
    monkeypatch.setenv("CI", "true")
    words = ("build", "net.onnx", "-o", "ci.so", "--trials", 0, "--registry", "ci.db")
    answer(folder, *words, "--lock", "records.lock")
    assert json.loads((folder / "ci.json").read_text())["lock"] is not None
    assert not (folder / "ci.db").exists()
    answer(folder, *words, "--lock", "records.lock", "--no-frozen")
    assert json.loads((folder / "ci.json").read_text())["lock"] is None


def test_a_build_system_hears_nothing_without_a_terminal(folder):
    (folder / "net.json").unlink()
    for _ in ("anew", "unchanged"):
        result = program(folder, "build", "net.onnx", *FROZEN)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_frozen_build_says_what_it_did(folder):
    words = ("build", "net.onnx", "-o", "said.so", "--lock", "records.lock", "--frozen")
    assert "\nwrote said.so\n" in program(folder, *words).stderr
    assert program(folder, *words).stdout.startswith("said.so is up to date\n")


def test_messages_as_lines_of_json(folder):
    (folder / "records.lock").write_text("no lock\n")
    result = program(folder, "build", "net.onnx", *FROZEN, "--message-format=json")
    assert result.returncode == 8
    (line,) = result.stderr.splitlines()
    told = json.loads(line)
    assert (told["level"], told["file"], told["line"]) == ("error", "records.lock", 1)
    assert (told["message"], told["code"]) == ("it is not a lock of ansor-deploy", 8)
    assert told["hint"]


HEAVY = {"tvm", "tvm_ffi", "numpy", "onnx", "onnxruntime", "paramiko", "sqlite_utils", "xgboost"}
HEAVY |= {"rich", "importlib.metadata", "multiprocessing"}
# What only a build needs that does something; the last three read what comes from outside.
HEAVY |= {f"ansor_deploy.{name}" for name in ("space.rule", "devices.inventory", "tune.plan")}
OUTSIDE = {f"ansor_deploy.registry.{name}" for name in ("bundle", "firewall", "instructions")}


@pytest.mark.parametrize("kind", ["frozen", "registry", "team"])
def test_an_unchanged_build_loads_nothing_heavy(folder, kind):
    words = FROZEN
    if kind != "frozen":
        words = ("--registry", "own.db", "--trials", "0", "-o", "own.so")
        if kind == "team":
            answer(folder, "tune", "net.onnx", "--registry", "r.db", "--trials", 1)
            answer(folder, "registry", "export", "team.jsonl", "--registry", "r.db")
            (folder / "ansor-deploy.toml").write_text('team = "team.jsonl"\n')
        hits = answer(folder, "build", "net.onnx", *words)["hits"]
        assert hits == (kind == "team")
    command = [sys.executable, "-X", "importtime", "-m", "ansor_deploy", "build", "net.onnx"]
    result = subprocess.run(
        [*command, *words, "--json"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout)["up_to_date"]
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "ansor_deploy.ship.up_to_date" in imported
    assert not (HEAVY | (OUTSIDE if kind == "registry" else set())) & imported
    assert touched(folder) == []


def test_tune_writes_the_lock_and_keeps_what_it_says_of_others(folder):
    lock = folder / "records.lock"
    write_lock(lock, HOST, TVM, [other_record(1e-3)], ["0" * 64])
    answer(folder, "tune", "net.onnx", "--registry", "t.db", "--trials", 2, "--lock", lock)
    locked = read_lock(lock, HOST, TVM)
    assert other_record(1e-3).key in locked.records
    assert "0" * 64 in locked.defaults
    assert not built(folder)["up_to_date"]
    os.utime(lock, (1, 1))
    answer(folder, "tune", "net.onnx", "--registry", "t.db", "--trials", 0, "--lock", lock)
    assert lock.stat().st_mtime == 1


def test_two_builds_at_once(folder):
    for number in range(2):
        onnx.save(net(seed=number), folder / f"net{number}.onnx")
    words = [sys.executable, "-m", "ansor_deploy", "build"]
    builds = [
        subprocess.Popen(
            [*words, f"net{n}.onnx", "-o", f"out/net{n}.so", "--lock", "records.lock", "--frozen"],
            cwd=folder,
        )
        for n in range(2)
    ]  # fmt: skip
    assert [build.wait() for build in builds] == [0, 0]
    assert len({(folder / "out" / f"net{n}.so").read_bytes() for n in range(2)}) == 2
    assert len(list((folder / "out").iterdir())) == 6


# Anywhere the same


@pytest.fixture
def elsewhere(folder, tmp_path_factory):
    """The model and its lock, not to be written to, and a folder that anyone may write to."""
    sources = tmp_path_factory.mktemp("ä $ource")
    for name in ("net.onnx", "records.lock"):
        shutil.copy(folder / name, sources)
        (sources / name).chmod(0o444)
    sources.chmod(0o555)
    out = tmp_path_factory.mktemp("ö ut")
    out.chmod(0o777)
    return sources, out


def apart(elsewhere, environment, **options):
    """A frozen build in these folders, of an environment with nothing else in it."""
    sources, out = elsewhere
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    words = ("-o", out / "net.so", "--lock", "records.lock", "--frozen", "--depfile", out / "net.d")
    env = {**kept, **environment}
    return program(sources, "build", "net.onnx", *words, env=env, **options)


def same_bytes(folder, out):
    return [(folder / name).read_bytes() == (out / name).read_bytes() for name in OUTPUTS]


def test_the_same_bytes_at_any_time_and_place(folder, elsewhere):
    environment = {"SOURCE_DATE_EPOCH": "1", "TZ": "Asia/Tokyo", "HOME": "/no/such/home"}
    result = apart(elsewhere, environment, preexec_fn=heed_permissions)
    assert (result.returncode, result.stderr) == (0, "")
    assert same_bytes(folder, elsewhere[1]) == [True, True, True]
    assert sorted(everything(elsewhere[0])) == ["net.onnx", "records.lock"]
    depends = (elsewhere[1] / "net.d").read_text()
    assert depends.startswith(f"{escaped(elsewhere[1])}/net.so: net.onnx records.lock ")


def test_the_same_bytes_on_another_account(folder, elsewhere):
    if os.geteuid() != 0 or not (setpriv := shutil.which("setpriv")):
        pytest.skip("needs root, to become somebody else")
    # What it may read is not the matter: who it is, and that it has no home, is.
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    become = [setpriv, "--reuid=54321", "--regid=54321", "--clear-groups", *may_read]
    words = ["build", "net.onnx", "--lock", "records.lock", "--frozen", "-q", "-o"]
    sources, out = elsewhere
    result = subprocess.run(
        [*become, sys.executable, "-m", "ansor_deploy", *words, out / "net.so"],
        cwd=sources,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert (out / "net.so").stat().st_uid == 54321
    assert same_bytes(folder, out) == [True, True, True]


def test_no_path_and_no_build_id_is_in_a_library(folder):
    content = (folder / "net.so").read_bytes()
    assert str(folder.parent).encode() not in content
    assert b".note.gnu.build-id" not in content
    for name in OUTPUTS[1:]:
        assert str(folder.parent.parent) not in (folder / name).read_text()


def test_a_build_below_make_takes_its_tokens_and_returns_them(folder):
    if not (make := shutil.which("make")):
        pytest.skip("there is no make here")
    rule = "net%.so:\n\t+@$(BUILD) net.onnx --lock records.lock --frozen -o $@\n"
    (folder / "Makefile").write_text(f"all: net1.so net2.so\n{rule}")
    words = [make, "-j2", f"BUILD={sys.executable} -m ansor_deploy build"]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert len({(folder / f"net{n}.so").read_bytes() for n in (1, 2)}) == 1


def test_a_build_is_repeated_byte_for_byte(folder):
    built(folder, "--header", "--rules", shipped("rules") / "skip.py")
    words = ("verify", "net.so", "net.onnx", "--rebuild", "--lock", "records.lock")
    told = answer(folder, *words, "--rules", shipped("rules") / "skip.py")
    outputs = ("net.so", "net.h", "net.intoto.json", "net.json")
    assert told == {"ok": True, "same": dict.fromkeys(outputs, True)}
    result = program(folder, *words)  # without the rule, it is another build
    assert result.returncode == 6
    assert "net.json: DIFFERS" in result.stdout
    assert program(folder, "verify", "net.so").returncode == 0
