"""What a library is used for: the split that was best, in the manifest, and what follows it."""

import json
import time

import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy.runtime import load
from ansor_deploy.ship.race.presets import splits
from ansor_deploy.ship.race.streams import open_streams
from ansor_deploy.ship.race.timing import split_of

BUILD = ("build", "net.onnx", "--trials", 0, "--beside", "none")
TWO = ("--target", "host:2")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a library for throughput on two cores, in two shapes."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(graphs.batches(), folder / "net.onnx")
    shapes = ("--input-shape", "x=1,3,8,8", "--input-shape", "x=2,3,8,8")
    made = program(folder, *BUILD, *TWO, *shapes, "--for", "throughput", "--report", "net.html")
    assert made.returncode == 0, made.stderr
    folder.joinpath("said.txt").write_text(made.stderr)
    return folder


def preset_of(folder, name="net"):
    return json.loads((folder / f"{name}.json").read_text()).get("preset")


def test_the_best_of_all_splits_is_kept(shop):
    preset = preset_of(shop)
    rates = [one["per_second"] for one in preset["tried"]]
    assert rates == sorted(rates, reverse=True)
    tried = {(one["threads"], one["streams"]) for one in preset["tried"]}
    assert tried == {*splits("throughput", 2)} == {(1, 2), (2, 1)}
    first = preset["tried"][0]
    assert (preset["threads"], preset["streams"]) == (first["threads"], first["streams"])
    assert "for throughput: " in " ".join((shop / "said.txt").read_text().split())
    assert "For throughput: " in (shop / "net.html").read_text()


def test_what_loads_it_takes_its_threads(shop):
    preset = preset_of(shop)
    assert load(shop / "net.so").threads == preset["threads"]
    assert load(shop / "net.so", 2).threads == 2
    timed = answer(shop, "bench", "net.so", "--time", "0.1s")["variants"]
    assert {one["streams"] for one in timed} == {preset["streams"]}
    asked = {(0, 0): (preset["threads"], preset["streams"]), (0, 1): (preset["threads"], 1)}
    asked |= {(0, 2): (1, 2), (2, 0): (2, 1), (1, 2): (1, 2)}
    assert {words: split_of(shop / "net.so", *words) for words in asked} == asked
    (one, _) = answer(shop, "bench", "net.so", "--time", "0.1s", "--streams", "1")["variants"]
    assert one["streams"] == 1


def test_what_was_prepared_is_what_runs(shop):
    library = load(shop / "net.so", 1)
    with open_streams(library, [0], 2) as side:
        side.prepare(2, 1)
        processes = [one._process.pid for one in side._workers]
        assert min(map(len, side.times(2, 1, time.monotonic() + 0.5))) >= 1
        assert [one._process.pid for one in side._workers] == processes


def test_requests_come_to_the_streams_of_the_preset(shop):
    words = ("bench", "net.so", "--time", "1s", "--rate")
    rated = answer(shop, *words, "20/s")
    preset = preset_of(shop)
    assert (rated["threads"], rated["streams"]) == (preset["threads"], preset["streams"])
    assert rated["arrived"] > rated["missed"]  # one is run, however busy the machine is
    assert rated["running"]["p50_ms"] > 0
    # No Python program begins so many calls.
    assert answer(shop, *words, "90000/s", "--streams", "1")["missed"] > 0
    refused(program(shop, *words, "200000/s"), 2, "at most 100,000", "a lower --rate")
    refused(program(shop, *words, "1/s", "--beside", "onnxruntime"), 2, "one copy", "--rate")
    refused(program(shop, *words, "fast"), 2, "write it like 100/s")


def test_another_use_is_another_build(shop):
    words = (*BUILD, *TWO, "--input-shape", "x=1,3,8,8", "-o", "one.so")
    first = answer(shop, *words, "--for", "latency")
    assert {(one["threads"], one["streams"]) for one in first["preset"]["tried"]} == {
        *splits("latency", 2)
    }
    assert answer(shop, *words, "--for", "latency")["up_to_date"]
    assert answer(shop, *words)["preset"] is None
    assert preset_of(shop, "one") is None


def test_a_frozen_build_keeps_the_split_of_its_lock(shop):
    """Every host makes the same bytes with it, and a model that the lock has no split of, none."""
    words = (*BUILD[:2], *TWO, "--for", "throughput", "--lock", "net.lock")
    shape = ("--input-shape", "x=1,3,8,8")
    found = answer(shop, *words, *shape, *BUILD[2:], "-o", "one.so")["preset"]
    frozen = (*words, *shape, "--frozen", "-o")
    said = {**found, "tried": []}
    assert answer(shop, *frozen, "a.so")["preset"] == said == preset_of(shop, "a")
    assert answer(shop, *frozen, "a.so")["up_to_date"]
    assert program(shop, *frozen, "b.so", "--report", "b.html").returncode == 0
    assert (shop / "a.json").read_bytes().replace(b"a.so", b"b.so") == (
        shop / "b.json"
    ).read_bytes()
    assert "as the lock says" in (shop / "b.html").read_text()
    rebuilt = ("verify", "a.so", "net.onnx", "--rebuild", "--lock", "net.lock")
    assert program(shop, *rebuilt).returncode == 0
    tasks = ("lock", "tasks", "net.onnx", *shape, "-o", "net.tasks", *TWO)
    assert program(shop, *tasks).returncode == 0
    select = ("lock", "select", "net.lock", "--tasks", "net.tasks", "-o", "own.lock", *TWO)
    assert program(shop, *select).returncode == 0
    assert (shop / "own.lock").read_bytes() == (shop / "net.lock").read_bytes()
    other = program(shop, *frozen, "c.so", "--for", "latency")
    refused(other, 5, "no split of the cores for latency of net.onnx", "--for latency", "--no-froz")
    lock = shop / "net.lock"
    lock.write_text(lock.read_text().replace('"streams":', '"streams":3'))
    assert not answer(shop, *frozen, "a.so")["up_to_date"]


def test_what_cannot_be_measured_is_refused(shop):
    def build(*words):
        return program(shop, *BUILD, "--for", "latency", "-o", "no.so", *words)

    several = ("--target", "x86-64-v4,x86-64-v3")
    refused(build(*several), 2, "one target, and the library is for several")
    refused(build("--target", "rpi3"), 2, "code of rpi3 runs elsewhere", "leave out --for")
    assert not (shop / "no.so").exists()
