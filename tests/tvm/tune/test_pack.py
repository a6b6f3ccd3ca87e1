"""Packs: candidates written here, measured by a Python that has none of our packages, taken in."""

import json
import shutil
from contextlib import contextmanager

import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.graphs import model, node, randn
from helpers.packs import measured

from ansor_deploy._tvm import VERSION
from ansor_deploy.registry.record import Provenance, Record, TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.digest import file_sha256

FEW = ("--registry", "registry.db", "--effort", "quick", "--min-impact", "0%")
TUNE = ("tune", "model.onnx", *FEW, "--pack", "out", "--trials", 4)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a pack of a model, and what its machine has measured."""
    folder = tmp_path_factory.mktemp("pack")
    onnx.save(
        model([node("MatMul", "x w", "y")], {"x": (9, 24)}, ["y"], {"w": randn(0, 24, 40)}),
        folder / "model.onnx",
    )
    said = answer(folder, *TUNE)
    assert said["pack"]["candidates"] > 1
    assert not (folder / "out" / "results.json").exists()
    ran = measured(folder / "out", folder / "site")
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture
def shop(written, tmp_path):
    """A copy of the folder, for a test of its own."""
    shutil.copytree(written, tmp_path / "shop", symlinks=True)
    return tmp_path / "shop"


@pytest.fixture(scope="module")
def taken(written, tmp_path_factory):
    """A copy of the folder after another run, and what that said: it took in what was measured."""
    folder = shutil.copytree(written, tmp_path_factory.mktemp("taken") / "shop", symlinks=True)
    return folder, answer(folder, *TUNE)


@pytest.fixture
def later(taken, tmp_path):
    """A copy of the folder of `taken`."""
    return shutil.copytree(taken[0], tmp_path / "later", symlinks=True)


@contextmanager
def changed(path):
    content = json.loads(path.read_text())
    yield content
    path.write_text(json.dumps(content))


def measurements(folder):
    with Registry.open(folder / "registry.db", write=False) as registry:
        (row,) = registry.stats()["per_target"]
        return list(registry.measurements(row["fingerprint"]))


def test_what_the_other_machine_measured_becomes_records_and_the_next_pack_has_others(
    written, taken, later
):
    (entry,) = json.loads((written / "out" / "pack.json").read_text())["tasks"].values()
    assert taken[1]["trials"] == len(entry["traces"])
    found = measurements(later)
    assert {one.trace for one in found} == set(entry["traces"])
    assert all(one.seconds or one.error for one in found)
    assert all(one.features and one.provenance.device for one in found)
    (after,) = json.loads((later / "out" / "pack.json").read_text())["tasks"].values()
    new = [trace for trace in after["traces"] if trace not in entry["traces"]]
    assert len(new) >= len(after["traces"]) - 1  # the best so far runs again, in turns with them

    assert measured(later / "out", later / "site").returncode == 0
    again = answer(later, *TUNE)
    assert again["trials"] == len(new)
    assert len(measurements(later)) == len(found) + len(new)


def test_a_build_takes_the_records(later):
    made = answer(later, "build", "model.onnx", *FEW, "--trials", 0)
    assert made["verify"]["ok"]
    (task,) = json.loads((later / made["manifest"]).read_text())["tasks"]
    assert task["record"] != "default"


def test_what_others_claim_keeps_its_origin_in_a_pack(shop):
    ((workload, entry),) = json.loads((shop / "out" / "pack.json").read_text())["tasks"].items()
    claimed, *_ = entry["traces"]
    origin = Provenance("0.2.0", VERSION, "metaschedule", "theirs", 0, "2026-07-01T00:00:00+00:00")
    with Registry.open(shop / "registry.db", write=True) as registry:
        (row,) = registry.stats()["per_target"]
        key = TaskKey(workload, row["fingerprint"])
        proof = {"oracle": "default", "seed": 0, "max_abs_err": 0.0, "max_rel_err": 0.0}
        claim = Record(key, claimed, (1.0,), proof, origin, claimed=True)
        registry.add_batch([], [claim])
    answer(shop, *TUNE)
    (found,) = [one.provenance for one in measurements(shop) if one.trace == claimed]
    assert found.search == "metaschedule"
    assert found.device != "theirs"


def test_what_was_taken_in_is_not_taken_in_again(written, later):
    for name in ("results.json", "pack.json"):
        shutil.copy(written / "out" / name, later / "out" / name)
    assert answer(later, *TUNE)["trials"] == 0


def test_a_run_that_was_interrupted_goes_on(shop):
    with changed(shop / "out" / "results.json") as results:
        whole = dict(results["tasks"])
        results["tasks"].clear()
    ran = measured(shop / "out", shop / "site")
    assert ran.returncode == 0
    again = json.loads((shop / "out" / "results.json").read_text())["tasks"]
    assert again.keys() == whole.keys()
    assert again != whole
    assert measured(shop / "out", shop / "site").returncode == 0
    assert json.loads((shop / "out" / "results.json").read_text())["tasks"] == again


def test_what_was_not_measured_is_left_as_it_is(shop):
    with changed(shop / "out" / "results.json") as results:
        results["tasks"].clear()
    said = answer(shop, *TUNE)
    assert said["trials"] == 0
    assert said["pack"]["candidates"] > 1


def too_fast(results, pack):
    (task,) = results["tasks"].values()
    task["found"][0]["seconds"] = [1e-12]


def of_another_pack(results, pack):
    results["pack"] = "0" * 64


def too_few(results, pack):
    (task,) = results["tasks"].values()
    task["found"].pop()


def a_finalist_that_is_none(results, pack):
    (task,) = results["tasks"].values()
    task["finalists"][0] = 1000


def right_and_wrong(results, pack):
    (task,) = results["tasks"].values()
    task["found"][0]["error"] = "run"


def a_program(results, pack):
    (task,) = pack["tasks"].values()
    task["traces"][0] = task["traces"][0].replace("GetSBlock", "UnsafeSetDType", 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (too_fast, "no machine does this"),
        (of_another_pack, "of another pack"),
        (too_few, "not a result for each candidate"),
        (a_finalist_that_is_none, "a finalist that is none"),
        (right_and_wrong, "neither the times of a right candidate nor an error"),
        (a_program, "UnsafeSetDType"),
    ],
)
def test_what_no_pack_says_is_refused_and_nothing_is_taken(change, reason, shop):
    folder = shop / "out"
    with changed(folder / "results.json") as results:
        with changed(folder / "pack.json") as pack:
            change(results, pack)
        if change is not of_another_pack:  # who changes the one can change the other
            results["pack"] = file_sha256(folder / "pack.json")
    said = program(shop, *TUNE)
    assert said.returncode == 8, said.stderr
    words = " ".join(said.stderr.split())
    assert "is refused, and nothing of it was taken" in words
    assert reason in words
    with Registry.open(shop / "registry.db", write=False) as registry:
        assert registry.stats()["measurements"] == 0


def test_a_folder_for_something_else_is_left_alone(shop):
    (shop / "mine").mkdir()
    (shop / "mine" / "thesis.txt").write_text("mine")
    said = program(shop, "tune", "model.onnx", *FEW, "--pack", "mine")
    assert said.returncode == 2
    assert "is not empty, and holds no pack" in said.stderr
    assert [path.name for path in (shop / "mine").iterdir()] == ["thesis.txt"]


def test_a_pack_for_another_target_is_not_taken_in(shop):
    said = program(shop, *TUNE, "--target", "rpi3")
    assert said.returncode == 2
    assert "for another target" in said.stderr


def test_a_pack_is_for_no_device(shop):
    said = program(shop, *TUNE, "--device", "pi")
    assert said.returncode == 2
