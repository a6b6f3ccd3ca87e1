"""A model of another size, built from what its neighbours' tuning left behind."""

import json
import shutil

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer

from ansor_deploy._tvm import VERSION
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import EFFORTS, Budget
from ansor_deploy.runtime.model import load
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.tune.search.features import decode_choices
from benchmarks.networks.onnx_net import Net

FEW = ("--registry", "registry.db", "--effort", "quick", "--min-impact", "0%")


def convolutions(size):
    """Two convolutions of one family, one of another; without Winograd's programs, for time."""
    net = Net("convolutions", 0)
    x = net.relu(net.conv(net.input("data", (1, 8, size, size)), 32, (3, 3), (2, 2), bias=True))
    x = net.relu(net.conv(x, 64, (3, 3), (2, 2), bias=True))
    x = net.conv(x, 32, (1, 1))
    return net.model(x, "out", (1, 32, size // 4, size // 4))


@pytest.fixture(scope="module", autouse=True)
def _few_trials():
    """Few of each task: what they find need not be good."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EFFORTS, "quick", Budget(per_task=10))
        yield


@pytest.fixture(scope="module")
def shop(_few_trials, tmp_path_factory):
    """A registry in which one of two models is tuned."""
    folder = tmp_path_factory.mktemp("shop")
    for size in (16, 24):
        onnx.save(convolutions(size), folder / f"{size}.onnx")
    answer(folder, "tune", "16.onnx", *FEW)
    return folder


def statuses(plan):
    return [row["status"] for row in plan["tasks"] if row["op"] == "conv2d"]


def records(folder, plan):
    """The best record of each task of a plan that is no hit yet."""
    with Registry.open(folder / "registry.db", write=False) as registry:
        found = registry.query()
        keys = {row["key"] for row in plan["tasks"]}
        return [row for row in found if row["workload"] in keys and row["tvm"] == VERSION]


def test_a_model_of_another_size_is_near_and_served_without_a_trial(shop):
    planned = answer(shop, "plan", "24.onnx", *FEW)
    assert statuses(planned) == ["near"] * 3
    assert planned["near"] >= 3
    assert planned["trials"] > 0
    cheap = answer(shop, "plan", "24.onnx", *FEW, "--reuse", "near")
    assert cheap["trials"] < planned["trials"]
    assert records(shop, planned) == []

    words = ("build", "24.onnx", *FEW, "--reuse", "near", "--trials", 0)
    made = answer(shop, *words)
    assert (made["trials"], made["up_to_date"], made["verify"]["ok"]) == (0, False, True)
    assert len(records(shop, planned)) == planned["near"]
    manifest = json.loads((shop / made["manifest"]).read_text())
    assert sum(task["record"] != "default" for task in manifest["tasks"]) == planned["near"]

    assert answer(shop, *words)["up_to_date"]
    again = answer(shop, "plan", "24.onnx", *FEW, "--reuse", "near")
    assert statuses(again) == ["hit"] * 3
    exact = answer(shop, "plan", "24.onnx", *FEW)
    assert statuses(exact) == ["miss"] * 3


def test_to_serve_near_ones_a_build_of_before_is_made_anew(shop):
    words = ("build", "24.onnx", "-o", "anew.so", *FEW, "--trials", 0)
    answer(shop, *words)
    assert answer(shop, *words)["up_to_date"]
    assert not answer(shop, *words, "--reuse", "near")["up_to_date"]
    assert answer(shop, *words, "--reuse", "near")["up_to_date"]


def test_what_runs_nowhere_gets_the_schedules_of_neighbours(shop, tmp_path):
    """The same program of a machine with the same core, or of another size; numbers stay right."""
    (shop / "many.toml").write_text('extends = "host"\ncores = 500\n')
    shutil.copyfile(shop / "registry.db", shop / "many.db")
    onnx.save(convolutions(28), shop / "28.onnx")
    for size in (16, 28):
        name = f"{size}-many.so"
        words = ("build", f"{size}.onnx", "-o", name, *FEW, "--registry", "many.db")
        words = (*words, "--target", "many.toml")
        made = answer(shop, *words)
        assert (made["trials"], made["ran_on"], made["shipped"]) == (0, None, "untuned")
        manifest = json.loads((shop / made["manifest"]).read_text())
        lent = [task for task in manifest["tasks"] if task["lender"]]
        assert [task["op"] for task in lent].count("conv2d") == 3
        same = [task["lender"]["key"] == task["key"] for task in lent if task["op"] == "conv2d"]
        assert same == [size == 16] * 3
        assert answer(shop, *words)["up_to_date"]
        shutil.copyfile(shop / name, tmp_path / name)
        target = manifest["target"] | {"cores": 1}
        here = (tmp_path / name).with_suffix(".json")
        here.write_text(json.dumps(manifest | {"target": target}))
        x = np.random.default_rng(0).standard_normal((1, 8, size, size), np.float32)
        (want,) = graphs.run(onnx.load(shop / f"{size}.onnx"), {"data": x})
        assert compare(load(tmp_path / name)(data=x)["out"], want)[0]


def test_the_first_look_at_a_task_is_what_its_relatives_tell(shop):
    """And its default schedule runs in turns with what is found: no record is worse than that."""
    onnx.save(convolutions(20), shop / "20.onnx")
    planned = answer(shop, "plan", "20.onnx", *FEW)
    assert statuses(planned) == ["near"] * 3
    answer(shop, "tune", "20.onnx", *FEW)
    keys = {row["key"] for row in planned["tasks"] if row["op"] == "conv2d"}
    with Registry.open(shop / "registry.db", write=False) as registry:
        (target,) = [row["fingerprint"] for row in registry.stats()["per_target"]]
        measured = [list(registry.measurements(target, TaskKey(key, target))) for key in keys]
    assert {made[0].provenance.search for made in measured} == {"ansor"}
    assert all(decode_choices(made[0].features) for made in measured)
    assert statuses(answer(shop, "plan", "20.onnx", *FEW)) == ["hit"] * 3
