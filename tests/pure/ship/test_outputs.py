"""Outputs are whole or absent, say what they were made from, and stay when nothing changed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import pytest
from helpers.cli_inside import program
from helpers.cli_process import everything, refused
from helpers.graphs import model, node
from helpers.libraries import manifest, task
from msgspec.structs import replace

from ansor_deploy.errors import AnsorError
from ansor_deploy.ship.manifest import Output, output_paths
from ansor_deploy.ship.outputs.commit import check_writable, commit, previous, staged, touch

RECORD, MODEL, RULE = "a" * 64, "b" * 64, "c" * 64
_BARE = manifest().to_json()
MANIFEST = manifest(
    model={
        **_BARE["model"],
        "sha256": MODEL,
        "external": [{"file": "w.bin", "sha256": "d" * 64}],
        "input_shapes": {"x": [1, 4]},
    },
    rules=[{"file": "rule.py", "sha256": RULE}],
    target={**_BARE["target"], "name": "board", "fingerprint": "e" * 64},
    lock="f" * 64,
    tasks=[task("0" * 64, record=record) for record in (RECORD, "default", RECORD)],
)


def write(output, content=b"code", manifest=MANIFEST, header=False, before=lambda: None):
    with staged(output, lambda path: path.write_bytes(content)) as library:
        return commit(library, output, manifest, header=header, before=before)


@pytest.fixture
def output(tmp_path):
    path = tmp_path / "m.so"
    write(path)
    return path


def fail():
    raise AnsorError("the depfile cannot be written")


def test_a_pair_outlives_a_header_that_cannot_be_written(output):
    output.with_suffix(".h").mkdir()
    before = everything(output.parent)
    with pytest.raises(AnsorError):
        write(output, b"other code", header=True)
    assert everything(output.parent) == before
    assert previous(output)


def test_nothing_is_left_of_a_first_build_that_fails(tmp_path):
    with pytest.raises(AnsorError):
        write(tmp_path / "m.so", header=True, before=fail)
    assert everything(tmp_path) == {}


BUILD = ("build", "net.onnx", "--frozen", "--lock", "r.lock", "-o", "m.so")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--depfile", "m.so"), "m.so: error: the command uses it twice"),
        (("--depfile", "m.json"), "m.json: error: the command uses it twice"),
        (("--report", "m.json"), "m.json: error: the command uses it twice"),
        (("--depfile", "m.md", "--report", "m.md"), "m.md: error: the command uses it twice"),
        (("--depfile", "net.onnx"), "net.onnx: error: the command uses it twice"),
        (("--depfile", "r.lock"), "r.lock: error: the command uses it twice"),
        (("-o", "./net.onnx"), "net.onnx: error: the command uses it twice"),
        (("--no-frozen", "--lock", "m.json"), "m.json: error: the command uses it twice"),
        (
            ("--no-frozen", "--lock", "x.lock", "--registry", "m.so"),
            "m.so: error: the command uses it twice",
        ),
    ],
)
def test_a_build_writes_over_nothing_that_it_reads(tmp_path, words, says):
    onnx.save(model([node("Relu", "x", "y")], {"x": (1, 4)}), tmp_path / "net.onnx")
    (tmp_path / "r.lock").write_text("")
    before = everything(tmp_path)
    refused(program(tmp_path, *BUILD, *words), 2, says)
    assert everything(tmp_path) == before


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_was_written_is_found_again(output):
    assert [path.name for path in output_paths(output, header=False)] == [
        *("m.so", "m.intoto.json", "m.json")
    ]
    assert sorted(everything(output.parent)) == ["m.intoto.json", "m.json", "m.so"]
    found = previous(output)
    assert found == replace(MANIFEST, artifact=Output("m.so", digest(output), 4))


@pytest.mark.parametrize("name", ["m.so", "m.json", "m.intoto.json"])
@pytest.mark.parametrize("harm", ["change", "remove", "another"])
def test_what_is_not_whole_is_not_there(output, name, harm):
    path = output.with_name(name)
    if harm == "change":
        path.write_bytes(path.read_bytes().replace(b"e", b"E", 1))
    elif harm == "remove":
        path.unlink()
    else:
        (output.parent / "else").mkdir()
        write(output.parent / "else" / "m.so", b"other")
        path.write_bytes((output.parent / "else" / name).read_bytes())
    assert previous(output) is None


def test_a_library_under_another_name_is_another_one(output):
    for name in ("so", "json", "intoto.json"):
        output.with_suffix(f".{name}").rename(output.with_name(f"n.{name}"))
    assert previous(output.with_name("n.so")) is None


def test_equal_outputs_are_left_alone(output):
    names = ("m.so", "m.intoto.json", "m.json")
    for name in names:
        os.utime(output.with_name(name), (1, 1))
    write(output)
    assert [output.with_name(name).stat().st_mtime for name in names] == [1, 1, 1]
    write(output, manifest=replace(MANIFEST, tool="0.3.0"))
    assert output.stat().st_mtime == 1
    assert output.with_name("m.json").stat().st_mtime > 1
    header = output.with_name("m.h")
    header.touch()
    for path in (output, header):
        os.utime(path, (1, 1))
    touch(output)
    assert (output.stat().st_mtime > 1, header.stat().st_mtime) == (True, 1)


def test_a_failure_leaves_what_was_there(output):
    before = everything(output.parent)

    def fail(path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(AnsorError, match="no space left"), staged(output, fail):
        pass
    assert everything(output.parent) == before


def test_a_library_s_name_is_its_own(tmp_path):
    for name in ("m.json", "m.h"):
        with pytest.raises(AnsorError, match="belongs to a library"):
            check_writable(tmp_path / name)
    check_writable(tmp_path / "new" / "m")
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(AnsorError, match=r"taken\.json is a folder"):
        check_writable(tmp_path / "taken.so")
    if Path("/proc/self").exists():
        with pytest.raises(AnsorError, match="cannot write to /proc/self"):
            check_writable(tmp_path / "m.so", Path("/proc/self/m.html"))
    write(tmp_path / "m")
    assert previous(tmp_path / "m")


def test_what_comes_before_the_manifest_must_succeed(output):
    def fail():
        assert output.read_bytes() == b"new"
        raise OSError(28, "No space left on device")

    with (
        staged(output, lambda path: path.write_bytes(b"new")) as library,
        pytest.raises(AnsorError, match="no space left"),
    ):
        commit(library, output, MANIFEST, header=False, before=fail)
    assert output.read_bytes() == b"code"
    assert previous(output)


KILLED = """
import sys, time
from pathlib import Path
from ansor_deploy.ship.outputs.commit import staged
def export(path):
    path.write_bytes(b"half")
    print("half", flush=True)
    time.sleep(60)
with staged(Path(sys.argv[1]), export):
    pass
"""


def test_what_a_killed_build_left_is_removed_by_the_next(output):
    words = [sys.executable, "-c", KILLED, str(output)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "half\n"
        (left,) = [p for p in output.parent.iterdir() if p.is_dir()]
        write(output, b"meanwhile")
        assert left.is_dir()  # of a build that is under way
        child.send_signal(signal.SIGKILL)
        child.wait()
    others = output.with_name(".m.so.of-a-user")
    others.mkdir()
    write(output, b"after")
    assert (left.exists(), others.exists()) == (False, True)
    assert previous(output).artifact.bytes == len(b"after")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_only_its_owner_may_replace_is_said_before_the_work(output, monkeypatch):
    """As in /tmp, where everybody may write, and remove nothing but their own files."""
    output.parent.chmod(0o1777)
    for path in (output.parent, output):
        os.chown(path, 1234, -1)
    check_writable(output)  # root may
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(AnsorError, match="is the user 1234's, and nobody else may replace it"):
        check_writable(output)


def test_builds_that_begin_at_once_leave_each_other_their_folders(output):
    """Each removes the folders of killed builds, which are those that nobody has locked."""
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda _: write(output), range(60)):
            pass
    assert previous(output)


# Provenance


def test_the_statement_names_all_that_went_in_and_out(output):
    stated = json.loads(output.with_suffix(".intoto.json").read_text())
    assert (stated["_type"], stated["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    subjects = {one["name"]: one["digest"]["sha256"] for one in stated["subject"]}
    assert subjects == {n: digest(output.with_name(n)) for n in ("m.so", "m.json")}
    definition = stated["predicate"]["buildDefinition"]
    went_in = {one["name"]: one.get("digest") for one in definition["resolvedDependencies"]}
    assert went_in == {
        "m.onnx": {"sha256": MODEL},
        "w.bin": {"sha256": "d" * 64},
        "target board": {"sha256": "e" * 64},
        "rule rule.py": {"sha256": RULE},
        f"record {RECORD}": {"sha256": RECORD},
        "apache-tvm": None,
    }
    assert definition["externalParameters"]["frozen"]


def test_the_statement_is_the_same_everywhere_and_always(output, tmp_path, monkeypatch):
    (tmp_path / "else").mkdir()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    time.sleep(0.01)
    write(tmp_path / "else" / "m.so")
    for name in ("m.so", "m.json", "m.intoto.json"):
        assert (tmp_path / "else" / name).read_bytes() == output.with_name(name).read_bytes()
