"""examples/ci: every line of the pipelines runs, the first time, again, and with a slower model."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from platform import machine

import onnx
import pytest
import yaml
from helpers.classifier import EXAMPLES
from helpers.cli_inside import answer, program
from helpers.graphs import model, node, randn
from helpers.hooked import observed_program, require
from helpers.pipelines import GitHub, GitLab

# One that can be tuned wherever this runs.
TARGET = "x86-64-v3:1" if machine() == "x86_64" else "host"
GATE = "No slower than the last release"


def network(layers: int) -> onnx.ModelProto:
    """Convolutions one after another; the interface is the same, however many there are."""
    names = ["x", *(f"h{at}" for at in range(layers - 1)), "y"]
    nodes = [
        node("Conv", f"{before} w{at}", after, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        for at, (before, after) in enumerate(pairwise(names))
    ]
    weights = {f"w{at}": randn(at, 32, 32, 3, 3) / 17 for at in range(layers)}
    return model(nodes, {"x": (1, 32, 32, 32)}, ["y"], weights)


def commit(service, layers):
    """Put a model and its lock into the repository, as a person does."""
    onnx.save(network(layers), service.repository / "model.onnx")
    (service.repository / "records.lock").unlink(missing_ok=True)
    words = ("--trials", 0, "--lock", "records.lock", "--registry", service.folder / "r.db")
    words += ("--target", TARGET)
    assert program(service.repository, "tune", "model.onnx", *words).returncode == 0


def example(name):
    pipeline = yaml.safe_load((EXAMPLES / "ci" / name).read_text())
    variables(pipeline)["TARGET"] = TARGET
    return pipeline


def variables(pipeline):
    return pipeline.get("env", pipeline.get("variables"))


def service(kind, folder):
    require(("bash", "c++", "curl"))
    made = kind(folder, observed_program(folder / "bin"))
    commit(made, 4)
    return made


def assert_reported(workspace):
    assert "<html" in (workspace / "out" / "report.html").read_text()
    bench = json.loads((workspace / "out" / "bench.json").read_text())
    assert bench["beside"][0]["peer"].startswith("ONNX Runtime")


def assert_tuned(lock, cache):
    """What was measured is kept, and so is the lock, whichever library was the faster one."""
    assert lock.read_text().startswith('{"ansor-deploy-lock"')
    (registry,) = cache.rglob("registry.db")
    assert answer(cache, "registry", "stats", "--registry", registry)["measurements"] > 0


def library_time(workspace: Path) -> int:
    return (workspace / "out" / "model.so").stat().st_mtime_ns


def test_github(tmp_path):
    pipeline, github = example("github-actions.yml"), service(GitHub, tmp_path)

    first = github.run(pipeline, "library", tag=True)
    assert github.failed == "", github.said
    assert_reported(first)
    assert f"model.onnx on {TARGET}" in (tmp_path / "summary.md").read_text()
    assert (github.kept / "library" / "model.so").is_file()
    released = (github.kept / "release" / "model.so").read_bytes()
    before = library_time(first)

    second = github.run(pipeline, "library")
    assert github.failed == "", github.said
    assert library_time(second) == before  # there was nothing to build

    commit(github, 12)
    github.run(pipeline, "library", tag=True)
    assert github.failed == GATE, github.said
    assert (github.kept / "release" / "model.so").read_bytes() == released


def test_github_at_night(tmp_path):
    pipeline, github = example("github-actions.yml"), service(GitHub, tmp_path)
    github.run(pipeline, "tune")
    assert github.failed == "", github.said
    assert_tuned(github.kept / "lock" / "records.lock", github.kept / "tune-cache")


def test_gitlab(tmp_path):
    pipeline, gitlab = example("gitlab-ci.yml"), service(GitLab, tmp_path)

    first = gitlab.run(pipeline, "library")
    assert gitlab.failed == "", gitlab.said
    assert_reported(first)
    assert not (first / "last").exists()
    before = library_time(first)

    second = gitlab.run(pipeline, "library")
    assert gitlab.failed == "", gitlab.said
    assert (second / "last" / "out" / "model.so").is_file()
    assert library_time(second) == before

    commit(gitlab, 12)
    gitlab.run(pipeline, "library")
    assert "compare last/out/model.so" in gitlab.failed, gitlab.said


def test_gitlab_at_night(tmp_path):
    pipeline, gitlab = example("gitlab-ci.yml"), service(GitLab, tmp_path)
    workspace = gitlab.run(pipeline, "tune")
    assert gitlab.failed == "", gitlab.said
    assert_tuned(workspace / "records.lock", gitlab.kept / "tune-cache")


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_the_tool_is_of_this_version(name):
    pipeline = example(name)
    pinned = variables(pipeline)["ANSOR_DEPLOY"]
    done = program(Path(os.sep), "--version")
    assert done.stdout.split()[-1] == pinned.partition("==")[2]
